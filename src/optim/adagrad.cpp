#include <cmath>

#include "optim/elements.h"

namespace zeroth::optim {
namespace {

struct AdagradFactors {
  float rate, decay, epsilon, gradient_scale;
};

class Adagrad final : public Optimizer {
 public:
  explicit Adagrad(const AdagradOptions& options) : options_(options) {}

  [[nodiscard]] int num_moments() const noexcept override { return 1; }

  void update(const ShardView& shard, const UpdateStep& step) const override {
    for (const Segment& segment : shard.segments) {
      update_segment(shard, segment.range, factors(segment, step));
    }
  }

 private:
  [[nodiscard]] AdagradFactors factors(const Segment& segment, const UpdateStep& step) const {
    const double past = static_cast<double>(step.update - 1);
    const double rate = rate_of(segment, step) / (1.0 + past * options_.learning_rate_decay);
    return {.rate = static_cast<float>(rate),
            .decay = static_cast<float>(decay_of(segment, options_.weight_decay)),
            .epsilon = static_cast<float>(options_.epsilon),
            .gradient_scale = static_cast<float>(step.gradient_scale)};
  }

  static void update_segment(const ShardView& shard, shard::Range range, const AdagradFactors& f) {
    float* const master = shard.master.data();
    const float* const gradients = shard.gradients.data();
    float* const sum = shard.moments[0].data();
    for_each_element(range, [=](std::int64_t i) {
      const float gradient = gradients[i] * f.gradient_scale + f.decay * master[i];
      sum[i] += gradient * gradient;
      master[i] -= f.rate * gradient / (std::sqrt(sum[i]) + f.epsilon);
    });
  }

  AdagradOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adagrad(const AdagradOptions& options) {
  return std::make_unique<Adagrad>(options);
}

}  // namespace zeroth::optim
