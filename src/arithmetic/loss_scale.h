#pragma once

#include <cstdint>

// The factor that keeps fp16 gradients from vanishing, and how it follows overflows: DeepSpeed's
// rules at every stage (DeepSpeed's own stage 0 has simpler ones).
namespace zeroth::arithmetic {

struct LossScaleOptions {
  double fixed = 0;             // 0: dynamic
  int initial_power = 16;       // dynamic: the first scale is 2 to this power
  std::int64_t window = 1000;   // clean updates after which it doubles
  std::int64_t hysteresis = 2;  // the scale is halved at this overflow; those before it are borne
  bool consecutive_hysteresis = false;  // count afresh after every clean update, not after a growth
  double min_scale = 1;

  friend bool operator==(const LossScaleOptions&, const LossScaleOptions&) = default;
};

// Attempts at an update, one after the other. Gradients of an attempt are divided by the scale()
// that its backward used, and update() comes after that: on the update that doubles the scale they
// would else be halved (case N22).
class LossScaler {
 public:
  // What a checkpoint keeps.
  struct State {
    double scale = 1;
    std::int64_t attempts = 0;
    std::int64_t last_overflow = -1;  // the attempt, counted from 0
    std::int64_t overflows_left = 1;  // until the scale is halved

    friend bool operator==(const State&, const State&) = default;
  };

  enum class Verdict {
    kFine,            // apply the update
    kSkipped,         // overflow: drop the gradients and go on
    kStuckAtMinimum,  // overflow, and the scale cannot fall further: the run should end
  };

  // window and hysteresis at least 1, min_scale above 0 and not above the first scale.
  explicit LossScaler(const LossScaleOptions& options);
  LossScaler(const LossScaleOptions& options, const State& state);

  [[nodiscard]] double scale() const noexcept { return state_.scale; }

  [[nodiscard]] const State& state() const noexcept { return state_; }

  // Whether any gradient of this attempt, on any rank, was infinite or no number.
  Verdict update(bool overflow);

 private:
  [[nodiscard]] Verdict after_overflow();
  void after_clean();

  LossScaleOptions options_;
  State state_;
};

}  // namespace zeroth::arithmetic
