#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "comm/communicator.h"

// Communicators that make trouble, for tests of what is built on communicators.
namespace zeroth::comm {

// Sleeps before each operation, for a time drawn from `seed` and the rank.
[[nodiscard]] std::unique_ptr<Communicator> make_delaying_communicator(
    std::unique_ptr<Communicator> inner, std::uint64_t seed, std::chrono::microseconds longest);

struct Failure {
  std::string operation;  // "all_gather", ...
  int at = 1;             // which call of it fails, from 1
};

// That call throws kCommunication, and the peers are told.
[[nodiscard]] std::unique_ptr<Communicator> make_failing_communicator(
    std::unique_ptr<Communicator> inner, Failure failure);

}  // namespace zeroth::comm
