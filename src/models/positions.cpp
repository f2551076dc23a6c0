#include "models/positions.h"

#include <numbers>

#include "kernels/attention.h"
#include "memory/tensor_tally.h"
#include "models/kv_cache.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/stack.h>
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

// Positions of the new tokens of each row: [1, T], or [B, T] where rows begin with padding. Padding
// itself gets position 0; no one sees it.
at::Tensor token_positions(const TokenBatch& batch, std::int64_t first) {
  const at::Tensor running =
      at::arange(first, first + batch.ids_BT.size(1), at::kLong).unsqueeze(0);
  if (batch.left_padding.empty()) {
    return running;
  }
  return (running - at::tensor(batch.left_padding).unsqueeze(1)).clamp_min(0);
}

// Hides the leading padding of each row; a padding position sees itself, so that no softmax is
// empty.
at::Tensor padded_mask(const at::Tensor& causal_TS, const std::vector<std::int64_t>& left_padding) {
  const std::int64_t queries = causal_TS.size(0);
  const std::int64_t keys = causal_TS.size(1);
  std::vector<at::Tensor> masks;
  for (const std::int64_t padding : left_padding) {
    at::Tensor mask = causal_TS.clone();
    const std::int64_t hidden = std::min(padding, keys);
    mask.narrow(1, 0, hidden).fill_(-std::numeric_limits<float>::infinity());
    for (std::int64_t query = 0; query < queries; ++query) {
      if (const std::int64_t key = keys - queries + query; key < hidden) {
        mask[query][key] = 0;
      }
    }
    masks.push_back(mask.unsqueeze(0));
  }
  return at::stack(masks);
}

}  // namespace

at::Tensor rope_frequencies(const formats::RopeConfig& rope, std::int64_t head_dim) {
  const at::Tensor exponents =
      at::arange(0, head_dim, 2, at::kDouble) / static_cast<double>(head_dim);
  const at::Tensor frequencies = 1.0 / at::pow(rope.theta, exponents);
  switch (rope.type) {
    case formats::RopeType::kDefault:
      return frequencies;
    case formats::RopeType::kLinear:
      return frequencies / rope.factor;
    case formats::RopeType::kLlama3:
      break;
  }
  return llama3_scaled(frequencies, rope);
}

Positions::Positions(const formats::RopeConfig& rope, std::int64_t head_dim) {
  // A table, not weights, though it is made while these are loaded.
  const memory::TensorScope uncounted(nullptr, memory::Purpose::kBuffers);
  frequencies_ = rope_frequencies(rope, head_dim);
}

void Positions::prepare(const ForwardContext& context) {
  const std::int64_t seen = context.cache == nullptr ? 0 : context.cache->length();
  const std::int64_t num_new = context.batch.ids_BT.size(1);
  const at::Tensor angles = token_positions(context.batch, seen).to(at::kFloat).unsqueeze(-1) *
                            frequencies_.view({1, 1, -1});
  cos_ = angles.cos();
  sin_ = angles.sin();
  mask_ = kernels::causal_mask(num_new, seen + num_new);
  if (!context.batch.left_padding.empty()) {
    mask_ = padded_mask(mask_, context.batch.left_padding);
  }
}

}  // namespace zeroth::models
