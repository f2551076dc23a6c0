#include "arithmetic/loss_scale.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace zeroth::arithmetic {
namespace {

bool is_dynamic(const LossScaleOptions& options) {
  return options.fixed == 0;
}

LossScaler::State first_state(const LossScaleOptions& options) {
  return {.scale = is_dynamic(options) ? std::ldexp(1.0, options.initial_power) : options.fixed,
          .overflows_left = options.hysteresis};
}

}  // namespace

LossScaler::LossScaler(const LossScaleOptions& options)
    : LossScaler(options, first_state(options)) {
}

LossScaler::LossScaler(const LossScaleOptions& options, const State& state)
    : options_(options), state_(state) {
  ZEROTH_CHECK(options.fixed >= 0 && std::isfinite(options.fixed),
               "a loss scale cannot be {}",
               options.fixed);
  ZEROTH_CHECK(!is_dynamic(options) || (options.window >= 1 && options.hysteresis >= 1),
               "a window of {} updates or a hysteresis of {} overflows is none",
               options.window,
               options.hysteresis);
  ZEROTH_CHECK(!is_dynamic(options) || (options.min_scale > 0 && options.min_scale <= state.scale),
               "a loss scale of {} is not between its minimum {} and infinity",
               state.scale,
               options.min_scale);
}

LossScaler::Verdict LossScaler::update(bool overflow) {
  if (!is_dynamic(options_)) {
    ++state_.attempts;
    return overflow ? Verdict::kSkipped : Verdict::kFine;
  }
  Verdict verdict = Verdict::kFine;
  if (overflow) {
    verdict = after_overflow();
  } else {
    after_clean();
  }
  ++state_.attempts;
  return verdict;
}

LossScaler::Verdict LossScaler::after_overflow() {
  state_.last_overflow = state_.attempts;
  // Once the last one is left it stays so until a growth: every further overflow halves at once.
  if (state_.overflows_left > 1) {
    --state_.overflows_left;
    return Verdict::kSkipped;
  }
  if (state_.scale <= options_.min_scale) {
    return Verdict::kStuckAtMinimum;
  }
  state_.scale = std::max(state_.scale / 2, options_.min_scale);
  return Verdict::kSkipped;
}

void LossScaler::after_clean() {
  if (options_.consecutive_hysteresis) {
    state_.overflows_left = options_.hysteresis;
  }
  // The attempt that starts a span of clean ones is not counted, so growth comes on the one after
  // the window.
  const std::int64_t clean = state_.attempts - state_.last_overflow - 1;
  if (clean > 0 && clean % options_.window == 0) {
    state_.overflows_left = options_.hysteresis;
    state_.scale *= 2;
  }
}

}  // namespace zeroth::arithmetic
