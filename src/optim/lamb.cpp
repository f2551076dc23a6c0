#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "optim/chunks.h"
#include "optim/elements.h"

namespace zeroth::optim {
namespace {

struct LambFactors {
  float beta1, beta2, rest1, rest2, inverse_correction, inverse_root_correction, epsilon, decay,
      gradient_scale;
};

// Where a weight would go, before learning rate and ratio.
float direction(const LambFactors& f, float weight, float first, float second) {
  const float root = std::sqrt(second) * f.inverse_root_correction + f.epsilon;
  return first * f.inverse_correction / root + f.decay * weight;
}

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
      apply(shard, segment.range, factors(segment, step), static_cast<float>(rate));
    }
  }

 private:
  [[nodiscard]] LambFactors factors(const Segment& segment, const UpdateStep& step) const {
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

  static Norms measure_segment(const ShardView& shard, shard::Range range, const LambFactors& f) {
    const std::vector<Norms> sums = map_chunks<Norms>(
        range, [&](shard::Range chunk) { return measure_chunk(shard, chunk, f); });
    Norms total;
    for (const Norms& sum : sums) {
      total.weights += sum.weights;
      total.update += sum.update;
    }
    return total;
  }

  static Norms measure_chunk(const ShardView& shard, shard::Range chunk, const LambFactors& f) {
    const float* const weights = shard.master.data() + chunk.begin;
    const float* const gradients = shard.gradients.data() + chunk.begin;
    float* const first = shard.moments[0].data() + chunk.begin;
    float* const second = shard.moments[1].data() + chunk.begin;
    std::array<float, kChunk> directions;
#pragma omp simd
    for (std::int64_t i = 0; i < chunk.size(); ++i) {
      const float gradient = gradients[i] * f.gradient_scale;
      first[i] = f.beta1 * first[i] + f.rest1 * gradient;
      second[i] = f.beta2 * second[i] + f.rest2 * gradient * gradient;
      directions[static_cast<std::size_t>(i)] = direction(f, weights[i], first[i], second[i]);
    }
    const auto size = static_cast<std::size_t>(chunk.size());
    return {.weights = chunk_sum_of_squares({weights, size}),
            .update = chunk_sum_of_squares({directions.data(), size})};
  }

  static void apply(const ShardView& shard, shard::Range range, const LambFactors& f, float rate) {
    float* const master = shard.master.data();
    const float* const first = shard.moments[0].data();
    const float* const second = shard.moments[1].data();
    for_each_element(range, [=](std::int64_t i) {
      master[i] -= rate * direction(f, master[i], first[i], second[i]);
    });
  }

  LambOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_lamb(const LambOptions& options) {
  return std::make_unique<Lamb>(options);
}

}  // namespace zeroth::optim
