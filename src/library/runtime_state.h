#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "base/worker_status.h"
#include "comm/communicator.h"
#include "config/placement.h"

#include "zeroth/runtime.h"

namespace zeroth {

struct Runtime::State {
  std::shared_ptr<comm::Communicator> comm;
  config::Placement place;
  std::optional<WorkerStatus> status;  // for the front that started this process, if one did
};

// The way in from inside the library.
struct RuntimeAccess {
  // Ranks that have met already, e.g. as threads.
  [[nodiscard]] static Runtime make(std::shared_ptr<comm::Communicator> comm);

  [[nodiscard]] static Runtime make(std::shared_ptr<Runtime::State> state) {
    return Runtime(std::move(state));
  }

  [[nodiscard]] static const config::Placement& place(const Runtime& runtime) {
    return runtime.state_->place;
  }

  [[nodiscard]] static const std::shared_ptr<comm::Communicator>& comm(const Runtime& runtime) {
    return runtime.state_->comm;
  }

  using State = Runtime::State;
};

}  // namespace zeroth
