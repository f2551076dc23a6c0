#include "models/positions.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "kernels/attention.h"
#include "memory/tensor_tally.h"
#include "models/kv_cache.h"
#include <fmt/format.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/max.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

namespace zeroth::models {
namespace {

// Llama 3.1: long waves are slowed down by `factor`, short ones kept, those between interpolated.
at::Tensor llama3_scaled(const at::Tensor& frequencies, const formats::RopeConfig& rope) {
  const at::Tensor wavelengths = 2.0 * std::numbers::pi / frequencies;
  const double original = rope.original_max_position_embeddings;
  const at::Tensor slowed = frequencies / rope.factor;
  const at::Tensor share = (original / wavelengths - rope.low_freq_factor) /
                           (rope.high_freq_factor - rope.low_freq_factor);
  const at::Tensor between = (1.0 - share) * slowed + share * frequencies;
  const at::Tensor long_or_between =
      at::where(wavelengths > original / rope.low_freq_factor, slowed, between);
  return at::where(wavelengths < original / rope.high_freq_factor, frequencies, long_or_between);
}

// The pair that turns `rotations` times over the positions the model was made for.
double yarn_pair(const formats::RopeConfig& rope, double head_dim, double rotations) {
  return head_dim *
         std::log(rope.original_max_position_embeddings / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(rope.theta));
}

// Pairs before beta_fast's are kept, those behind beta_slow's slowed down by `factor`, with a ramp
// between the two.
at::Tensor yarn_scaled(const at::Tensor& frequencies, const formats::RopeConfig& rope) {
  const std::int64_t pairs = frequencies.numel();
  const auto head_dim = static_cast<double>(2 * pairs);
  double low = yarn_pair(rope, head_dim, rope.beta_fast);
  double high = yarn_pair(rope, head_dim, rope.beta_slow);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, head_dim - 1);
  const double length = low == high ? 0.001 : high - low;
  const at::Tensor slowed_share = ((at::arange(pairs, at::kDouble) - low) / length).clamp(0.0, 1.0);
  return frequencies / rope.factor * slowed_share + frequencies * (1.0 - slowed_share);
}

// Positions of the new tokens of each row: [1, T], or [B, T] where rows begin with padding or are
// joined from several. Padding itself gets position 0; no one sees it.
at::Tensor token_positions(const TokenBatch& batch, std::int64_t first) {
  const at::Tensor running =
      at::arange(first, first + batch.ids_BT.size(1), at::kLong).unsqueeze(0);
  if (batch.begins_BT.defined()) {
    return running - batch.begins_BT;
  }
  if (batch.left_padding.empty()) {
    return running;
  }
  return (running - at::tensor(batch.left_padding).unsqueeze(1)).clamp_min(0);
}

// Hides the leading padding of each row; a padding position sees itself, so that no softmax is
// empty.
at::Tensor behind_padding(const at::Tensor& first_keys_T,
                          std::int64_t first_position,
                          const std::vector<std::int64_t>& left_padding) {
  const at::Tensor own_T =
      at::arange(first_position, first_position + first_keys_T.size(0), at::kInt);
  const at::Tensor padding_B = at::tensor(left_padding).to(at::kInt);
  return at::maximum(first_keys_T, at::minimum(padding_B.unsqueeze(1), own_T));
}

// The keys that new tokens see, of those that causality and window allow.
at::Tensor seen_keys(const at::Tensor& first_keys_T, const TokenBatch& batch, std::int64_t first) {
  if (batch.begins_BT.defined()) {
    return at::maximum(first_keys_T, batch.begins_BT.to(at::kInt));
  }
  return batch.left_padding.empty() ? first_keys_T
                                    : behind_padding(first_keys_T, first, batch.left_padding);
}

void refuse_scaled_length(const formats::RopeConfig& rope, std::int64_t longest) {
  if (rope.type == formats::RopeType::kDynamic &&
      static_cast<double>(longest) > rope.original_max_position_embeddings) {
    throw Error(ErrorKind::kNotSupported,
                fmt::format("a row of {} positions is longer than the {} that this model was made "
                            "for, and its rope type \"dynamic\" beyond them is not supported: "
                            "results would depend on the longest row seen\n  Cut rows to {} "
                            "(cutoff_len), or choose another rope_scaling.",
                            longest,
                            rope.original_max_position_embeddings,
                            rope.original_max_position_embeddings));
  }
}

std::int64_t least_padding(const TokenBatch& batch) {
  return batch.left_padding.empty()
             ? 0
             : *std::min_element(batch.left_padding.begin(), batch.left_padding.end());
}

}  // namespace

at::Tensor rope_frequencies(const formats::RopeConfig& rope, std::int64_t head_dim) {
  const at::Tensor exponents =
      at::arange(0, head_dim, 2, at::kDouble) / static_cast<double>(head_dim);
  const at::Tensor frequencies = 1.0 / at::pow(rope.theta, exponents);
  switch (rope.type) {
    case formats::RopeType::kDefault:
    case formats::RopeType::kDynamic:
      return frequencies;
    case formats::RopeType::kLinear:
      return frequencies / rope.factor;
    case formats::RopeType::kYarn:
      return yarn_scaled(frequencies, rope);
    case formats::RopeType::kLlama3:
      break;
  }
  return llama3_scaled(frequencies, rope);
}

Positions::Positions(std::vector<formats::LayerKind> kinds, std::int64_t head_dim)
    : kinds_(std::move(kinds)), shared_(kinds_.size()) {
  // A table, not weights, though it is made while these are loaded.
  const memory::TensorScope uncounted(nullptr, memory::Purpose::kBuffers);
  for (const formats::LayerKind& kind : kinds_) {
    frequencies_.push_back(rope_frequencies(kind.rope, head_dim));
  }
}

void Positions::prepare(const ForwardContext& context, at::ScalarType type) {
  const TokenBatch& batch = context.batch;
  const std::int64_t seen = context.cache == nullptr ? 0 : context.cache->length();
  const std::int64_t all = seen + batch.ids_BT.size(1);
  const at::Tensor places = token_positions(batch, seen);
  const std::int64_t longest = batch.begins_BT.defined() ? places.max().item<std::int64_t>() + 1
                                                         : all - least_padding(batch);
  const at::Tensor positions = places.to(at::kFloat).unsqueeze(-1);
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    const formats::RopeConfig& rope = kinds_[kind].rope;
    refuse_scaled_length(rope, longest);
    const at::Tensor angles = positions * frequencies_[kind].view({1, 1, -1});
    const at::Tensor first_keys = kernels::causal_first_keys(all - seen, all, kinds_[kind].window);
    shared_[kind] = {.cos = angles.cos().mul_(rope.attention_factor).to(type),
                     .sin = angles.sin().mul_(rope.attention_factor).to(type),
                     .first_keys = seen_keys(first_keys, batch, seen)};
  }
}

}  // namespace zeroth::models
