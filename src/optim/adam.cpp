#include <cmath>

#include "optim/elements.h"

namespace zeroth::optim {
namespace {

enum class Decay { kDecoupled, kInGradient };

template <Decay kDecay>
class Adam final : public Optimizer {
 public:
  explicit Adam(const AdamOptions& options) : options_(options) {}

  [[nodiscard]] int num_moments() const noexcept override { return 2; }

  void update(const ShardView& shard, const UpdateStep& step) const override {
    for (const Segment& segment : shard.segments) {
      for_each_piece(shard, segment.range, [f = factors(segment, step)](const auto& elements) {
        kDecay == Decay::kDecoupled ? simd::adamw(elements, f) : simd::adam(elements, f);
      });
    }
  }

 private:
  [[nodiscard]] simd::AdamFactors factors(const Segment& segment, const UpdateStep& step) const {
    const auto [beta1, beta2] = step.betas.value_or(std::array{options_.beta1, options_.beta2});
    const double correction1 = options_.bias_correction ? share_averaged(beta1, step) : 1.0;
    const double correction2 = options_.bias_correction ? share_averaged(beta2, step) : 1.0;
    const double rate = rate_of(segment, step);
    const double decay = decay_of(segment, options_.weight_decay);
    return {.beta2 = static_cast<float>(beta2),
            .rest1 = static_cast<float>(1.0 - beta1),
            .rest2 = static_cast<float>(1.0 - beta2),
            .keep = static_cast<float>(1.0 - rate * decay),
            .gradient_decay = static_cast<float>(decay),
            .step_size = static_cast<float>(rate / correction1),
            .inverse_root_correction = static_cast<float>(1.0 / std::sqrt(correction2)),
            .epsilon = static_cast<float>(options_.epsilon),
            .gradient_scale = static_cast<float>(step.gradient_scale)};
  }

  AdamOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adamw(const AdamOptions& options) {
  return std::make_unique<Adam<Decay::kDecoupled>>(options);
}

std::unique_ptr<Optimizer> make_adam(const AdamOptions& options) {
  return std::make_unique<Adam<Decay::kInGradient>>(options);
}

}  // namespace zeroth::optim
