#include <cmath>

#include "optim/elements.h"

namespace zeroth::optim {
namespace {

enum class Decay { kDecoupled, kInGradient };

// The constants of one segment's update, in the precision of the arithmetic. rest1 is 1 - beta1:
// taken in fp32 it would be off by 1e-5 where beta is near 1.
struct AdamFactors {
  float beta1, beta2, rest1, rest2, keep, gradient_decay, step_size, inverse_root_correction,
      epsilon, gradient_scale;
};

template <Decay kDecay>
class Adam final : public Optimizer {
 public:
  explicit Adam(const AdamOptions& options) : options_(options) {}

  [[nodiscard]] int num_moments() const noexcept override { return 2; }

  void update(const ShardView& shard, const UpdateStep& step) const override {
    for (const Segment& segment : shard.segments) {
      update_segment(shard, segment.range, factors(segment, step));
    }
  }

 private:
  [[nodiscard]] AdamFactors factors(const Segment& segment, const UpdateStep& step) const {
    const auto [beta1, beta2] = step.betas.value_or(std::array{options_.beta1, options_.beta2});
    const double correction1 = options_.bias_correction ? share_averaged(beta1, step) : 1.0;
    const double correction2 = options_.bias_correction ? share_averaged(beta2, step) : 1.0;
    const double rate = rate_of(segment, step);
    const double decay = decay_of(segment, options_.weight_decay);
    return {.beta1 = static_cast<float>(beta1),
            .beta2 = static_cast<float>(beta2),
            .rest1 = static_cast<float>(1.0 - beta1),
            .rest2 = static_cast<float>(1.0 - beta2),
            .keep = static_cast<float>(1.0 - rate * decay),
            .gradient_decay = static_cast<float>(decay),
            .step_size = static_cast<float>(rate / correction1),
            .inverse_root_correction = static_cast<float>(1.0 / std::sqrt(correction2)),
            .epsilon = static_cast<float>(options_.epsilon),
            .gradient_scale = static_cast<float>(step.gradient_scale)};
  }

  static void update_segment(const ShardView& shard, shard::Range range, const AdamFactors& f) {
    float* const master = shard.master.data();
    const float* const gradients = shard.gradients.data();
    float* const first = shard.moments[0].data();
    float* const second = shard.moments[1].data();
    for_each_element(range, [=](std::int64_t i) {
      float gradient = gradients[i] * f.gradient_scale;
      float weight = master[i];
      if constexpr (kDecay == Decay::kDecoupled) {
        weight *= f.keep;
      } else {
        gradient += f.gradient_decay * weight;
      }
      first[i] += f.rest1 * (gradient - first[i]);
      second[i] = f.beta2 * second[i] + f.rest2 * gradient * gradient;
      const float root = std::sqrt(second[i]) * f.inverse_root_correction + f.epsilon;
      master[i] = weight - f.step_size * first[i] / root;
    });
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
