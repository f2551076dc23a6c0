#include "base/phases.h"

#include <chrono>
#include <numeric>

namespace zeroth {
namespace {

using Clock = std::chrono::steady_clock;

struct State {
  bool measures = false;
  Phase phase = Phase::kOther;
  Clock::time_point since;
  PhaseSeconds sums;

  void enter(Phase next) noexcept {
    const Clock::time_point now = Clock::now();
    sums.seconds[static_cast<std::size_t>(phase)] +=
        std::chrono::duration<double>(now - since).count();
    since = now;
    phase = next;
  }
};

thread_local State state;

}  // namespace

const char* name_of(Phase phase) noexcept {
  switch (phase) {
    case Phase::kProducts:
      return "products";
    case Phase::kAttention:
      return "attention";
    case Phase::kCollectives:
      return "collectives";
    case Phase::kOptimizer:
      return "optimizer";
    case Phase::kOther:
      break;
  }
  return "other";
}

double PhaseSeconds::total() const noexcept {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

void start_phases() noexcept {
  state = {.measures = true, .phase = Phase::kOther, .since = Clock::now(), .sums = {}};
}

PhaseSeconds finish_phases() noexcept {
  state.enter(Phase::kOther);
  state.measures = false;
  return state.sums;
}

PhaseScope::PhaseScope(Phase phase) noexcept {
  if (!state.measures || (state.phase == Phase::kAttention && phase == Phase::kProducts)) {
    return;
  }
  before_ = state.phase;
  switched_ = true;
  state.enter(phase);
}

PhaseScope::~PhaseScope() {
  if (switched_ && state.measures) {
    state.enter(before_);
  }
}

}  // namespace zeroth
