#include "optim/elements.h"

namespace zeroth::optim {
namespace {

class Lion final : public Optimizer {
 public:
  explicit Lion(const LionOptions& options) : options_(options) {}

  [[nodiscard]] int num_moments() const noexcept override { return 1; }

  void update(const ShardView& shard, const UpdateStep& step) const override {
    for (const Segment& segment : shard.segments) {
      for_each_piece(shard, segment.range, [f = factors(segment, step)](const auto& elements) {
        simd::lion(elements, f);
      });
    }
  }

 private:
  [[nodiscard]] simd::LionFactors factors(const Segment& segment, const UpdateStep& step) const {
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

  LionOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_lion(const LionOptions& options) {
  return std::make_unique<Lion>(options);
}

}  // namespace zeroth::optim
