#include "base/check.h"
#include "optim/elements.h"

namespace zeroth::optim {
namespace {

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
      for_each_piece(
          shard, segment.range, [this, f = factors(segment, step)](const auto& elements) {
            move(elements, f);
          });
    }
  }

 private:
  [[nodiscard]] simd::SgdFactors factors(const Segment& segment, const UpdateStep& step) const {
    // PyTorch's buffer starts as the first gradient, undampened; so does one that was zero.
    const double addition = step.update == 1 ? 1.0 : 1.0 - options_.dampening;
    return {.rate = static_cast<float>(rate_of(segment, step)),
            .decay = static_cast<float>(decay_of(segment, options_.weight_decay)),
            .gradient_scale = static_cast<float>(step.gradient_scale),
            .momentum = static_cast<float>(options_.momentum),
            .addition = static_cast<float>(addition)};
  }

  void move(const simd::Elements& elements, const simd::SgdFactors& f) const {
    if (options_.momentum == 0) {
      simd::sgd(elements, f);
    } else if (options_.nesterov) {
      simd::sgd_nesterov(elements, f);
    } else {
      simd::sgd_with_momentum(elements, f);
    }
  }

  SgdOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(const SgdOptions& options) {
  return std::make_unique<Sgd>(options);
}

}  // namespace zeroth::optim
