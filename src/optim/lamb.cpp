#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "optim/chunks.h"
#include "optim/elements.h"

namespace zeroth::optim {
namespace {

class Lamb final : public Optimizer {
 public:
  explicit Lamb(const LambOptions& options) : options_(options) {}

  [[nodiscard]] int num_moments() const noexcept override { return 2; }

  [[nodiscard]] bool uses_norms() const noexcept override { return true; }

  void measure(const ShardView& shard,
               const UpdateStep& step,
               std::span<Norms> one_per_segment) const override {
    ZEROTH_CHECK(one_per_segment.size() == shard.segments.size(),
                 "{} norms for {} segments",
                 one_per_segment.size(),
                 shard.segments.size());
    for (std::size_t index = 0; index < shard.segments.size(); ++index) {
      const Segment& segment = shard.segments[index];
      one_per_segment[index] = measure_segment(shard, segment.range, factors(segment, step));
    }
  }

  [[nodiscard]] double ratio(const Norms& of_whole_parameter) const override {
    const auto [weights, update] = of_whole_parameter;
    if (weights == 0 || update == 0) {
      return 1.0;
    }
    return std::clamp(std::sqrt(weights / update), options_.min_ratio, options_.max_ratio);
  }

  void update(const ShardView& shard, const UpdateStep& step) const override {
    ZEROTH_CHECK(shard.ratios.size() == shard.segments.size(),
                 "{} ratios for {} segments: measure() first",
                 shard.ratios.size(),
                 shard.segments.size());
    for (std::size_t index = 0; index < shard.segments.size(); ++index) {
      const Segment& segment = shard.segments[index];
      const double rate = rate_of(segment, step) * shard.ratios[index];
      for_each_piece(shard,
                     segment.range,
                     [f = factors(segment, step), rate = static_cast<float>(rate)](
                         const auto& elements) { simd::lamb_apply(elements, f, rate); });
    }
  }

 private:
  [[nodiscard]] simd::LambFactors factors(const Segment& segment, const UpdateStep& step) const {
    const auto [beta1, beta2] = step.betas.value_or(std::array{options_.beta1, options_.beta2});
    const double correction1 = options_.bias_correction ? share_averaged(beta1, step) : 1.0;
    const double correction2 = options_.bias_correction ? share_averaged(beta2, step) : 1.0;
    return {.beta1 = static_cast<float>(beta1),
            .beta2 = static_cast<float>(beta2),
            .rest1 = static_cast<float>(1.0 - beta1),
            .rest2 = static_cast<float>(1.0 - beta2),
            .inverse_correction = static_cast<float>(1.0 / correction1),
            .inverse_root_correction = static_cast<float>(1.0 / std::sqrt(correction2)),
            .epsilon = static_cast<float>(options_.epsilon),
            .decay = static_cast<float>(decay_of(segment, options_.weight_decay)),
            .gradient_scale = static_cast<float>(step.gradient_scale)};
  }

  static Norms measure_segment(const ShardView& shard,
                               shard::Range range,
                               const simd::LambFactors& f) {
    const std::vector<Norms> sums = map_chunks<Norms>(
        range, [&](shard::Range chunk) { return measure_chunk(elements_of(shard, chunk), f); });
    Norms total;
    for (const Norms& sum : sums) {
      total.weights += sum.weights;
      total.update += sum.update;
    }
    return total;
  }

  static Norms measure_chunk(const simd::Elements& chunk, const simd::LambFactors& f) {
    std::array<float, simd::kChunk> directions;
    simd::lamb_measure(chunk, f, directions.data());
    Norms norms;
    simd::sums_of_squares(chunk.master, chunk.count, &norms.weights);
    simd::sums_of_squares(directions.data(), chunk.count, &norms.update);
    return norms;
  }

  LambOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_lamb(const LambOptions& options) {
  return std::make_unique<Lamb>(options);
}

}  // namespace zeroth::optim
