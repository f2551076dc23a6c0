#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "shard/flat_layout.h"

namespace zeroth::optim {

// A stretch of a shard that belongs to parameters of one kind. Padding belongs to none.
struct Segment {
  shard::Range range;
  bool decays = true;
};

// One rank's part of one unit: all fp32, all of the same length. Borrowed.
struct ShardView {
  std::span<float> master;
  std::span<const float> gradients;
  std::array<std::span<float>, 2> moments;  // as many as num_moments() says
  std::span<const Segment> segments;
};

struct UpdateStep {
  std::int64_t update = 1;  // counted from 1: bias corrections use it
  double learning_rate = 0;
  double gradient_scale =
      1;  // what turns stored gradients into those to apply: normalisation and clipping
  // Of this update where the schedule moves them (OneCycle), in place of the optimizer's own.
  std::optional<std::array<double, 2>> betas{};
};

// Rules that turn gradients into updates of a flat shard. Stateless but for their constants:
// moments live with the shard, so that they can rest elsewhere.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  [[nodiscard]] virtual int num_moments() const noexcept = 0;
  virtual void update(const ShardView& shard, const UpdateStep& step) const = 0;
};

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
};

// Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019; PyTorch's
// torch.optim.AdamW.
[[nodiscard]] std::unique_ptr<Optimizer> make_adamw(const AdamWOptions& options);

struct SgdOptions {
  double momentum = 0;
  double weight_decay = 0;  // added to the gradient, as torch.optim.SGD does
};

[[nodiscard]] std::unique_ptr<Optimizer> make_sgd(const SgdOptions& options);

}  // namespace zeroth::optim
