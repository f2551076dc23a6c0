#include "models/decoder_units.h"

#include <cmath>

#include "base/check.h"
#include "kernels/attention.h"
#include "kernels/cross_entropy.h"
#include "kernels/embedding.h"
#include "kernels/linear.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "kernels/swiglu.h"
#include "models/kv_cache.h"

#include <ATen/ops/nonzero.h>

namespace zeroth::models {
namespace {

constexpr std::int64_t kIgnoreLabel = -100;
constexpr std::uint64_t kLinearsPerBlock = 7;

int index_of(const std::vector<Parameter>& parameters, const std::string& name) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].name == name) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

LinearSlots slots_of(const std::vector<Parameter>& parameters,
                     const std::string& module,
                     std::uint64_t number) {
  const LinearSlots slots{.weight = index_of(parameters, module + ".weight"),
                          .bias = index_of(parameters, module + ".bias"),
                          .lora_a = index_of(parameters, module + ".lora_A.weight"),
                          .lora_b = index_of(parameters, module + ".lora_B.weight"),
                          .dropout_module = number};
  ZEROTH_CHECK(slots.weight >= 0, "the block has no {}", module);
  return slots;
}

}  // namespace

EmbeddingUnit::EmbeddingUnit(std::vector<Parameter> parameters,
                             std::shared_ptr<Positions> positions)
    : Unit("embedding"), positions_(std::move(positions)) {
  parameters_ = std::move(parameters);
}

at::Tensor EmbeddingUnit::forward(const ForwardContext& context, const at::Tensor& /*input*/) {
  positions_->prepare(context);
  return kernels::embedding(parameters_.front().value, context.batch.ids_BT);
}

BlockUnit::BlockUnit(const shapes::UnitShape& shape,
                     std::vector<Parameter> parameters,
                     const BlockOptions& options,
                     std::shared_ptr<Positions> positions)
    : Unit(shape.name), options_(options), positions_(std::move(positions)) {
  parameters_ = std::move(parameters);
  const std::string prefix = "model.layers." + std::to_string(options.layer) + ".";
  input_norm_ = index_of(parameters_, prefix + "input_layernorm.weight");
  post_attention_norm_ = index_of(parameters_, prefix + "post_attention_layernorm.weight");
  std::uint64_t number = static_cast<std::uint64_t>(options.layer) * kLinearsPerBlock;
  for (auto [slots, module] : {std::pair{&q_, "self_attn.q_proj"},
                               {&k_, "self_attn.k_proj"},
                               {&v_, "self_attn.v_proj"},
                               {&o_, "self_attn.o_proj"},
                               {&gate_, "mlp.gate_proj"},
                               {&up_, "mlp.up_proj"},
                               {&down_, "mlp.down_proj"}}) {
    *slots = slots_of(parameters_, prefix + module, number++);
  }
}

at::Tensor BlockUnit::forward(const ForwardContext& context, const at::Tensor& hidden_BTC) {
  const at::Tensor attended_BTC = hidden_BTC + attention(context, norm(input_norm_, hidden_BTC));
  return attended_BTC + mlp(context, norm(post_attention_norm_, attended_BTC));
}

at::Tensor BlockUnit::attention(const ForwardContext& context, const at::Tensor& x_BTC) const {
  const std::int64_t batch = x_BTC.size(0);
  const std::int64_t tokens = x_BTC.size(1);
  auto heads = [&](const at::Tensor& x, std::int64_t count) {
    return x.view({batch, tokens, count, options_.head_dim});
  };
  const at::Tensor& cos = positions_->cos();
  const at::Tensor& sin = positions_->sin();
  const at::Tensor q_BTHD =
      kernels::rope(heads(linear(context, q_, x_BTC), options_.num_heads), cos, sin);
  const at::Tensor k_BTKD =
      kernels::rope(heads(linear(context, k_, x_BTC), options_.num_key_heads), cos, sin);
  at::Tensor k_BKSD = k_BTKD.transpose(1, 2);
  at::Tensor v_BKSD = heads(linear(context, v_, x_BTC), options_.num_key_heads).transpose(1, 2);
  if (context.cache != nullptr) {
    std::tie(k_BKSD, v_BKSD) = context.cache->append(options_.layer, k_BKSD, v_BKSD);
  }
  const double scale = 1.0 / std::sqrt(static_cast<double>(options_.head_dim));
  const at::Tensor mixed_BHTD =
      kernels::attention(q_BTHD.transpose(1, 2), k_BKSD, v_BKSD, positions_->mask(), scale);
  return linear(context, o_, mixed_BHTD.transpose(1, 2).reshape({batch, tokens, -1}));
}

at::Tensor BlockUnit::mlp(const ForwardContext& context, const at::Tensor& x_BTC) const {
  return linear(
      context, down_, kernels::swiglu(linear(context, gate_, x_BTC), linear(context, up_, x_BTC)));
}

at::Tensor BlockUnit::norm(int index, const at::Tensor& x) const {
  return kernels::rms_norm(
      x, parameters_[static_cast<std::size_t>(index)].value, options_.norm_epsilon);
}

at::Tensor BlockUnit::linear(const ForwardContext& context,
                             const LinearSlots& slots,
                             const at::Tensor& x) const {
  return adapted_linear(context, parameters_, slots, options_.lora, x);
}

HeadUnit::HeadUnit(std::vector<Parameter> parameters, Parameter* tied, double norm_epsilon)
    : Unit("head"), norm_epsilon_(norm_epsilon) {
  parameters_ = std::move(parameters);
  if (tied != nullptr) {
    borrowed_.push_back(tied);
  }
}

at::Tensor HeadUnit::forward(const ForwardContext& context, const at::Tensor& hidden_BTC) {
  const at::Tensor& labels_BT = context.batch.labels_BT;
  if (!labels_BT.defined()) {
    const std::int64_t tokens = hidden_BTC.size(1);
    return logits(context.last_position ? hidden_BTC.narrow(1, tokens - 1, 1) : hidden_BTC);
  }
  // Position t predicts the label at t + 1. Only rows with a target enter the head: the rest cost
  // nothing.
  const std::int64_t predicting = hidden_BTC.size(1) - 1;
  const at::Tensor targets = labels_BT.narrow(1, 1, predicting).reshape({-1});
  const at::Tensor places = (targets != kIgnoreLabel).nonzero().view({-1});
  const at::Tensor hidden = hidden_BTC.narrow(1, 0, predicting).reshape({-1, hidden_BTC.size(2)});
  return kernels::cross_entropy_sum(logits(hidden.index_select(0, places)),
                                    targets.index_select(0, places));
}

at::Tensor HeadUnit::logits(const at::Tensor& hidden) const {
  const at::Tensor normed = kernels::rms_norm(hidden, parameters_.front().value, norm_epsilon_);
  return kernels::linear(normed,
                         borrowed_.empty() ? parameters_.back().value : borrowed_.front()->value);
}

}  // namespace zeroth::models
