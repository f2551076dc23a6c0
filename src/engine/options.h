#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "arithmetic/loss_scale.h"
#include "arithmetic/schedule.h"
#include "kernels/packed_weight.h"
#include "zero/zero_options.h"

namespace zeroth::engine {

// What becomes of a trainable parameter that no gradient reaches.
enum class UnusedParameters {
  kAllowed,
  kRefusedAtFirst,  // if none reaches it on any rank in the first update: later it may be so
  kRefused,         // on any rank in any micro-step
};

struct EngineOptions {
  int zero_stage = 0;
  std::optional<bool> reduce_every_micro_step;  // in place of what the stage does
  zero::Tuning tuning;
  at::ScalarType dtype = at::kFloat;
  std::int64_t accumulation_steps = 1;  // micro-steps of an update
  double max_grad_norm = 1.0;           // 0: no clipping
  arithmetic::Schedule schedule;
  std::uint64_t seed = 42;   // of dropout
  bool share_frozen = true;  // weights that do not train: one copy for a host's ranks
  // Frozen factors are kept once more, as products read them: changes no number but for the order
  // of sums.
  kernels::Packing pack_weights = kernels::Packing::kNone;
  bool recompute_activations = false;  // units keep their input alone for backward
  UnusedParameters unused = UnusedParameters::kRefusedAtFirst;
  // Units that were not written here: what their graphs reach is looked at before it is derived.
  bool checks_graphs = false;
  arithmetic::LossScaleOptions loss_scale{};  // of fp16
  bool skip_non_finite = true;  // bf16: an update whose gradient is not finite is dropped
  // Backward starts from 1 / this of each loss sum; step() corrects by the true number of targets,
  // so nothing needs to be known in advance. A power of two changes no bit.
  double gradient_divisor = 1024;
};

// The sum of token losses and the number of target tokens: what adds up over micro-steps and ranks.
struct Loss {
  double sum = 0;
  std::int64_t weight = 0;

  [[nodiscard]] double mean() const noexcept {
    return weight == 0 ? 0.0 : sum / static_cast<double>(weight);
  }
};

// What step() did. Everything but `updated` speaks of the finished window and is meaningful at its
// end only.
struct StepReport {
  bool window_finished = false;
  bool updated = false;       // false at a window's end: the attempt was skipped
  std::int64_t step = 0;      // updates made so far
  std::int64_t attempts = 0;  // updates made or skipped so far
  double grad_norm = 0;       // of the whole gradient, before clipping
  double clip_factor = 1;
  double learning_rate = 0;  // that this update used
  Loss loss;
  double loss_scale = 1;          // that backward used
  double next_loss_scale = 1;     // that the next attempt uses
  bool stuck_at_minimum = false;  // an overflow that the loss scale cannot answer any more
  // Where infinity or NaN came up first, if it did: "the gradient of ..." or "the output of ...".
  std::string non_finite{};
};

}  // namespace zeroth::engine
