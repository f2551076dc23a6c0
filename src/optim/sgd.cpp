#include "optim/optimizer.h"

namespace zeroth::optim {
namespace {

class Sgd final : public Optimizer {
 public:
  explicit Sgd(const SgdOptions& options) : options_(options) {}

  [[nodiscard]] int num_moments() const noexcept override { return options_.momentum == 0 ? 0 : 1; }

  void update(const ShardView& shard, const UpdateStep& step) const override {
    for (const Segment& segment : shard.segments) {
      update_segment(shard, segment, step);
    }
  }

 private:
  void update_segment(const ShardView& shard,
                      const Segment& segment,
                      const UpdateStep& step) const {
    float* const master = shard.master.data();
    const float* const gradients = shard.gradients.data();
    float* const velocity = options_.momentum == 0 ? nullptr : shard.moments[0].data();
    const auto rate = static_cast<float>(step.learning_rate);
    const auto scale = static_cast<float>(step.gradient_scale);
    const auto decay = static_cast<float>(segment.decays ? options_.weight_decay : 0.0);
    // PyTorch's buffer starts as the first gradient, which a zero buffer gives as well.
    const auto momentum = static_cast<float>(options_.momentum);
#pragma omp parallel for schedule(static)
    for (std::int64_t i = segment.range.begin; i < segment.range.end; ++i) {
      float gradient = gradients[i] * scale + decay * master[i];
      if (velocity != nullptr) {
        velocity[i] = momentum * velocity[i] + gradient;
        gradient = velocity[i];
      }
      master[i] -= rate * gradient;
    }
  }

  SgdOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(const SgdOptions& options) {
  return std::make_unique<Sgd>(options);
}

}  // namespace zeroth::optim
