#include "zeroth/runtime.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>

#include "base/error.h"
#include "base/log.h"
#include "config/resolve.h"
#include "engine/processors.h"
#include "library/runtime_state.h"
#include "library/tensor_error.h"
#include "train/communicator.h"
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace zeroth {
namespace {

using StatePtr = std::shared_ptr<RuntimeAccess::State>;

// What `zeroth launch` reads when this process has ended. Not for programs that this one starts.
void take_status(RuntimeAccess::State& state) {
  constexpr auto kVariable = "ZEROTH_STATUS_FD";
  const char* text = std::getenv(kVariable);
  if (text == nullptr) {
    return;
  }
  const std::string_view digits = text;
  int descriptor = -1;
  std::from_chars(digits.data(), digits.data() + digits.size(), descriptor);
  ::unsetenv(kVariable);
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  state.status.emplace(WorkerStatus::open(descriptor));
}

config::Placement placement() {
  config::Problems problems;
  const config::Placement place = config::placement_of(config::process_environment(), problems);
  problems.throw_if_any();
  return place;
}

// The front tells people, once and last.
void tell(RuntimeAccess::State& state, const std::string& text) {
  if (!state.status || !state.status->set_failure(text)) {
    log::always(text);
  }
}

// Gives the code to end with.
int report(RuntimeAccess::State& state, ErrorKind kind, const std::string& message) {
  tell(state, fmt::format("{}: {}", kind_name(kind), message));
  return exit_code(kind);
}

std::unique_ptr<comm::Communicator> communicator_of(const StatePtr& state, double timeout_s) {
  const config::Placement& place = state->place;
  return train::make_communicator(place.kind,
                                  {.run_name = place.run_name,
                                   .rank = static_cast<int>(place.rank),
                                   .size = static_cast<int>(place.world_size),
                                   .start_timeout_s = timeout_s},
                                  [state](const Error& error) {
                                    // Nothing can be thrown out of MPI's own start.
                                    ::_exit(report(*state, error.kind(), error.what()));
                                  });
}

void join(const StatePtr& state, const RuntimeOptions& options) {
  state->place = placement();
  state->comm = communicator_of(state, options.start_timeout_s);
  log::set_quiet(state->comm->rank() != 0);
  state->comm->on_note([raw = state.get()](const std::string& activity) {
    if (raw->status) {
      raw->status->set_activity(activity);
    }
  });
  engine::share_processors(*state->comm, options.threads);
}

int report_failure(RuntimeAccess::State& state) {
  try {
    throw;
  } catch (const Error& error) {
    return report(state, error.kind(), error.what());
  } catch (const c10::Error& error) {
    const Error ours = library::as_error(error);
    return report(state, ours.kind(), ours.what());
  } catch (const std::bad_alloc&) {
    return report(state, ErrorKind::kMemory, "no memory is left");
  } catch (const std::exception& error) {
    tell(state, fmt::format("the program failed: {}", error.what()));
    return EXIT_FAILURE;
  }
}

std::string reason_in_flight() {
  try {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "something that is no std::exception was thrown";
  }
}

}  // namespace

Runtime::Runtime(std::shared_ptr<State> state) : state_(std::move(state)) {
}

Runtime Runtime::from_environment(const RuntimeOptions& options) {
  auto state = std::make_shared<State>();
  take_status(*state);
  join(state, options);
  return Runtime(std::move(state));
}

Runtime RuntimeAccess::make(std::shared_ptr<comm::Communicator> comm) {
  auto state = std::make_shared<State>();
  if (comm->size() > 1) {
    state->place = {.kind = config::LaunchKind::kHost,
                    .rank = comm->rank(),
                    .world_size = comm->size(),
                    .source = "WORLD_SIZE"};
  }
  state->comm = std::move(comm);
  return make(std::move(state));
}

std::int64_t Runtime::rank() const noexcept {
  return state_->comm->rank();
}

std::int64_t Runtime::size() const noexcept {
  return state_->comm->size();
}

void Runtime::print(const std::string& text) const {
  if (rank() == 0) {
    std::puts(text.c_str());
    std::fflush(stdout);
  }
}

void Runtime::barrier() const {
  state_->comm->barrier("barrier of the program");
}

int run(const std::function<void(Runtime& runtime)>& program, const RuntimeOptions& options) {
  const auto state = std::make_shared<RuntimeAccess::State>();
  try {
    take_status(*state);
    join(state, options);
    Runtime runtime = RuntimeAccess::make(state);
    program(runtime);
    return 0;
  } catch (...) {
    if (state->comm != nullptr) {
      state->comm->abort(reason_in_flight());
    }
    return report_failure(*state);
  }
}

}  // namespace zeroth
