#include <array>
#include <cmath>

#include "optim/optimizer.h"

namespace zeroth::optim {
namespace {

// The constants of one update, in the precision of the arithmetic.
struct AdamWFactors {
  float beta1, beta2, keep, step_size, inverse_root_correction, epsilon, gradient_scale;
};

class AdamW final : public Optimizer {
 public:
  explicit AdamW(const AdamWOptions& options) : options_(options) {}

  [[nodiscard]] int num_moments() const noexcept override { return 2; }

  void update(const ShardView& shard, const UpdateStep& step) const override {
    for (const Segment& segment : shard.segments) {
      update_segment(shard, segment.range, factors(step, segment.decays));
    }
  }

 private:
  [[nodiscard]] AdamWFactors factors(const UpdateStep& step, bool decays) const {
    const auto [beta1, beta2] = step.betas.value_or(std::array{options_.beta1, options_.beta2});
    const double correction1 = 1.0 - std::pow(beta1, static_cast<double>(step.update));
    const double correction2 = 1.0 - std::pow(beta2, static_cast<double>(step.update));
    const double decay = decays ? step.learning_rate * options_.weight_decay : 0.0;
    return {.beta1 = static_cast<float>(beta1),
            .beta2 = static_cast<float>(beta2),
            .keep = static_cast<float>(1.0 - decay),
            .step_size = static_cast<float>(step.learning_rate / correction1),
            .inverse_root_correction = static_cast<float>(1.0 / std::sqrt(correction2)),
            .epsilon = static_cast<float>(options_.epsilon),
            .gradient_scale = static_cast<float>(step.gradient_scale)};
  }

  static void update_segment(const ShardView& shard, shard::Range range, const AdamWFactors& f) {
    float* const master = shard.master.data();
    const float* const gradients = shard.gradients.data();
    float* const first = shard.moments[0].data();
    float* const second = shard.moments[1].data();
#pragma omp parallel for simd schedule(static)
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      const float gradient = gradients[i] * f.gradient_scale;
      first[i] += (1.0F - f.beta1) * (gradient - first[i]);
      second[i] = f.beta2 * second[i] + (1.0F - f.beta2) * gradient * gradient;
      const float root = std::sqrt(second[i]) * f.inverse_root_correction + f.epsilon;
      master[i] = master[i] * f.keep - f.step_size * first[i] / root;
    }
  }

  AdamWOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adamw(const AdamWOptions& options) {
  return std::make_unique<AdamW>(options);
}

}  // namespace zeroth::optim
