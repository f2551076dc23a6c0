#include "generate/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_set>
#include <vector>

namespace zeroth::generate {
namespace {

// Keskar et al., "CTRL", 2019: positive logits of seen tokens are divided, negative ones
// multiplied.
void penalise_repetition(std::span<float> logits,
                         std::span<const std::int64_t> seen,
                         double penalty) {
  const std::unordered_set<std::int64_t> ids(seen.begin(), seen.end());
  for (const std::int64_t id : ids) {
    float& logit = logits[static_cast<std::size_t>(id)];
    logit = static_cast<float>(logit > 0 ? logit / penalty : logit * penalty);
  }
}

// Token ids by falling logit, cut to the top k.
std::vector<std::size_t> best_first(std::span<const float> logits, std::int64_t top_k) {
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0U);
  const std::size_t kept =
      top_k > 0 ? std::min(order.size(), static_cast<std::size_t>(top_k)) : order.size();
  const auto better = [&](std::size_t a, std::size_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(), better);
  order.resize(kept);
  return order;
}

// The probabilities of `order` after the temperature, cut to the smallest set that holds at least
// `top_p`.
std::vector<double> nucleus(std::span<const float> logits,
                            std::vector<std::size_t>& order,
                            const SamplingOptions& options) {
  std::vector<double> weights;
  double total = 0;
  for (const std::size_t id : order) {
    weights.push_back(std::exp((logits[id] - logits[order.front()]) / options.temperature));
    total += weights.back();
  }
  double held = 0;
  std::size_t kept = 0;
  while (kept < weights.size() && held < options.top_p * total) {
    held += weights[kept++];
  }
  weights.resize(std::max<std::size_t>(kept, 1));
  order.resize(weights.size());
  return weights;
}

}  // namespace

std::int64_t next_token(std::span<float> logits,
                        std::span<const std::int64_t> seen,
                        const SamplingOptions& options,
                        RandomStream& random) {
  if (options.repetition_penalty != 1.0) {
    penalise_repetition(logits, seen, options.repetition_penalty);
  }
  if (!options.do_sample) {
    return std::max_element(logits.begin(), logits.end()) - logits.begin();
  }
  std::vector<std::size_t> order = best_first(logits, options.top_k);
  const std::vector<double> weights = nucleus(logits, order, options);
  double left = random.uniform() * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) {
      return static_cast<std::int64_t>(order[i]);
    }
  }
  return static_cast<std::int64_t>(order.back());
}

}  // namespace zeroth::generate
