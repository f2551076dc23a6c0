#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "kernels/simd/storage.h"
#include "shard/flat_layout.h"

namespace zeroth::optim {

// A stretch of a shard that belongs to one parameter, or, for optimizers without norms, to several
// neighbours that move alike. Padding belongs to none.
struct Segment {
  shard::Range range;
  bool decays = true;
  double rate_factor = 1;                // times the update's learning rate
  std::optional<double> weight_decay{};  // of its parameter group, in place of the optimizer's
  std::int64_t parameter = 0;            // index in the unit's trainable list

  friend bool operator==(const Segment&, const Segment&) = default;
};

// Whether neighbours may be one segment for an optimizer without norms.
[[nodiscard]] bool move_alike(const Segment& a, const Segment& b) noexcept;

// The weights that a model computes with where these are narrower than the master: bf16 or fp16.
struct RoundedWeights {
  kernels::simd::Storage type = kernels::simd::Storage::kBf16;
  std::span<std::uint16_t> bits{};  // as long as the master, or empty
};

// One rank's part of one unit: all fp32, all of the same length. Borrowed.
struct ShardView {
  std::span<float> master;
  std::span<const float> gradients;
  std::array<std::span<float>, 2> moments;  // as many as num_moments() says
  std::span<const Segment> segments;
  std::span<const double> ratios{};  // one a segment, of an optimizer that uses norms
  // update() stores each new weight here too, rounded to nearest even, but for padding's.
  RoundedWeights rounded{};
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
// moments live with the shard, so that they can rest elsewhere. They start at zero.
//
// An optimizer that uses norms moves each parameter as far as norms of the whole parameter say,
// which no rank may hold. One update is then: measure() on every piece; the sums of each
// parameter's pieces added up over the shards, in their order; ratio() of that; update() with the
// ratios. Between measure() and update() neither weights nor moments may change.
class Optimizer {
 public:
  // Sums of squares.
  struct Norms {
    double weights = 0;
    double update = 0;  // before learning rate and ratio
  };

  virtual ~Optimizer() = default;
  [[nodiscard]] virtual int num_moments() const noexcept = 0;
  virtual void update(const ShardView& shard, const UpdateStep& step) const = 0;

  // Whether the three calls above are needed; else update() alone does it all.
  [[nodiscard]] virtual bool uses_norms() const noexcept { return false; }

  // Moves the moments and takes the norms of each segment's part. No sum depends on the number of
  // threads.
  virtual void measure(const ShardView& shard,
                       const UpdateStep& step,
                       std::span<Norms> one_per_segment) const;
  [[nodiscard]] virtual double ratio(const Norms& of_whole_parameter) const;
};

struct AdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool bias_correction = true;
};

// Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019; PyTorch's
// torch.optim.AdamW.
[[nodiscard]] std::unique_ptr<Optimizer> make_adamw(const AdamOptions& options);

// Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015, with weight decay added to the
// gradient: PyTorch's torch.optim.Adam, DeepSpeed's with adam_w_mode false.
[[nodiscard]] std::unique_ptr<Optimizer> make_adam(const AdamOptions& options);

struct SgdOptions {
  double momentum = 0;
  double dampening = 0;     // of what a gradient adds to the momentum, but for the first
  bool nesterov = false;    // needs momentum, and no dampening
  double weight_decay = 0;  // added to the gradient
};

// PyTorch's torch.optim.SGD.
[[nodiscard]] std::unique_ptr<Optimizer> make_sgd(const SgdOptions& options);

struct LionOptions {
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0;  // decoupled
};

// Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023.
[[nodiscard]] std::unique_ptr<Optimizer> make_lion(const LionOptions& options);

struct AdagradOptions {
  double learning_rate_decay = 0;
  double epsilon = 1e-10;
  double weight_decay = 0;  // added to the gradient
};

// Duchi et al., "Adaptive Subgradient Methods", 2011; PyTorch's torch.optim.Adagrad.
[[nodiscard]] std::unique_ptr<Optimizer> make_adagrad(const AdagradOptions& options);

struct LambOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;  // part of the direction, as in the paper
  bool bias_correction = true;
  double min_ratio = 0.01;
  double max_ratio = 10;
};

// You et al., "Large Batch Optimization for Deep Learning", 2020, with DeepSpeed's bounds of the
// trust ratio. Uses norms.
[[nodiscard]] std::unique_ptr<Optimizer> make_lamb(const LambOptions& options);

}  // namespace zeroth::optim
