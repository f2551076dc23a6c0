#include "optim/elements.h"

namespace zeroth::optim {
namespace {

class Adagrad final : public Optimizer {
 public:
  explicit Adagrad(const AdagradOptions& options) : options_(options) {}

  [[nodiscard]] int num_moments() const noexcept override { return 1; }

  void update(const ShardView& shard, const UpdateStep& step) const override {
    for (const Segment& segment : shard.segments) {
      for_each_piece(shard, segment.range, [f = factors(segment, step)](const auto& elements) {
        simd::adagrad(elements, f);
      });
    }
  }

 private:
  [[nodiscard]] simd::AdagradFactors factors(const Segment& segment, const UpdateStep& step) const {
    const double past = static_cast<double>(step.update - 1);
    const double rate = rate_of(segment, step) / (1.0 + past * options_.learning_rate_decay);
    return {.rate = static_cast<float>(rate),
            .decay = static_cast<float>(decay_of(segment, options_.weight_decay)),
            .epsilon = static_cast<float>(options_.epsilon),
            .gradient_scale = static_cast<float>(step.gradient_scale)};
  }

  AdagradOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adagrad(const AdagradOptions& options) {
  return std::make_unique<Adagrad>(options);
}

}  // namespace zeroth::optim
