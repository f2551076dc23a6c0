#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "comm/communicator.h"

// A communicator that tells what passes through it, and can make every collective as slow as a
// worse link would: for counting traffic, for tests and for benchmarks.
namespace zeroth::comm {

// One call of this rank.
struct Traffic {
  std::string operation;
  std::string label;
  std::int64_t bytes = 0;  // that this rank contributes: its shard, or its whole input
};

struct Watch {
  // Before a call begins, allocations and barriers too. What it throws ends the call.
  std::function<void(Communicator& inner, const Traffic&)> started;
  std::function<void(const Traffic&)> waited;  // when its wait is over
  // Collectives that were started pass one after the other, each taking at least this long.
  std::chrono::microseconds delay{0};
};

[[nodiscard]] std::unique_ptr<Communicator> make_watched_communicator(
    std::shared_ptr<Communicator> inner, Watch watch);

}  // namespace zeroth::comm
