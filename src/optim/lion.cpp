#include "optim/elements.h"

namespace zeroth::optim {
namespace {

struct LionFactors {
  float beta1, beta2, rest1, rest2, keep, rate, gradient_scale;
};

class Lion final : public Optimizer {
 public:
  explicit Lion(const LionOptions& options) : options_(options) {}

  [[nodiscard]] int num_moments() const noexcept override { return 1; }

  void update(const ShardView& shard, const UpdateStep& step) const override {
    for (const Segment& segment : shard.segments) {
      update_segment(shard, segment.range, factors(segment, step));
    }
  }

 private:
  [[nodiscard]] LionFactors factors(const Segment& segment, const UpdateStep& step) const {
    const auto [beta1, beta2] = step.betas.value_or(std::array{options_.beta1, options_.beta2});
    const double rate = rate_of(segment, step);
    const double decay = decay_of(segment, options_.weight_decay);
    return {.beta1 = static_cast<float>(beta1),
            .beta2 = static_cast<float>(beta2),
            .rest1 = static_cast<float>(1.0 - beta1),
            .rest2 = static_cast<float>(1.0 - beta2),
            .keep = static_cast<float>(1.0 - rate * decay),
            .rate = static_cast<float>(rate),
            .gradient_scale = static_cast<float>(step.gradient_scale)};
  }

  static void update_segment(const ShardView& shard, shard::Range range, const LionFactors& f) {
    float* const master = shard.master.data();
    const float* const gradients = shard.gradients.data();
    float* const momentum = shard.moments[0].data();
    for_each_element(range, [=](std::int64_t i) {
      const float gradient = gradients[i] * f.gradient_scale;
      const float blend = f.beta1 * momentum[i] + f.rest1 * gradient;
      const float sign =
          static_cast<float>(blend > 0.0F) - static_cast<float>(blend < 0.0F);  // 0 of 0
      master[i] = master[i] * f.keep - f.rate * sign;
      momentum[i] = f.beta2 * momentum[i] + f.rest2 * gradient;
    });
  }

  LionOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_lion(const LionOptions& options) {
  return std::make_unique<Lion>(options);
}

}  // namespace zeroth::optim
