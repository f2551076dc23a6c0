#include "base/check.h"
#include "optim/elements.h"

namespace zeroth::optim {
namespace {

struct SgdFactors {
  float rate, decay, gradient_scale, momentum, addition;
};

class Sgd final : public Optimizer {
 public:
  explicit Sgd(const SgdOptions& options) : options_(options) {
    ZEROTH_CHECK(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
                 "Nesterov's rule needs momentum and no dampening, got {} and {}",
                 options.momentum,
                 options.dampening);
  }

  [[nodiscard]] int num_moments() const noexcept override { return options_.momentum == 0 ? 0 : 1; }

  void update(const ShardView& shard, const UpdateStep& step) const override {
    for (const Segment& segment : shard.segments) {
      const SgdFactors f = factors(segment, step);
      if (options_.momentum == 0) {
        move(shard, segment.range, f);
      } else if (options_.nesterov) {
        move_with_momentum<true>(shard, segment.range, f);
      } else {
        move_with_momentum<false>(shard, segment.range, f);
      }
    }
  }

 private:
  [[nodiscard]] SgdFactors factors(const Segment& segment, const UpdateStep& step) const {
    // PyTorch's buffer starts as the first gradient, undampened; so does one that was zero.
    const double addition = step.update == 1 ? 1.0 : 1.0 - options_.dampening;
    return {.rate = static_cast<float>(rate_of(segment, step)),
            .decay = static_cast<float>(decay_of(segment, options_.weight_decay)),
            .gradient_scale = static_cast<float>(step.gradient_scale),
            .momentum = static_cast<float>(options_.momentum),
            .addition = static_cast<float>(addition)};
  }

  static void move(const ShardView& shard, shard::Range range, const SgdFactors& f) {
    float* const master = shard.master.data();
    const float* const gradients = shard.gradients.data();
    for_each_element(range, [=](std::int64_t i) {
      master[i] -= f.rate * (gradients[i] * f.gradient_scale + f.decay * master[i]);
    });
  }

  template <bool kNesterov>
  static void move_with_momentum(const ShardView& shard, shard::Range range, const SgdFactors& f) {
    float* const master = shard.master.data();
    const float* const gradients = shard.gradients.data();
    float* const velocity = shard.moments[0].data();
    for_each_element(range, [=](std::int64_t i) {
      const float gradient = gradients[i] * f.gradient_scale + f.decay * master[i];
      velocity[i] = f.momentum * velocity[i] + f.addition * gradient;
      const float move = kNesterov ? gradient + f.momentum * velocity[i] : velocity[i];
      master[i] -= f.rate * move;
    });
  }

  SgdOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(const SgdOptions& options) {
  return std::make_unique<Sgd>(options);
}

}  // namespace zeroth::optim
