#include "models/building_blocks.h"

#include "base/check.h"
#include "kernels/attention.h"
#include "kernels/rope.h"
#include "models/kv_cache.h"

namespace zeroth::models {
namespace {

LinearSlots slots_at(const BuildingSite& site, const std::string& module, std::int64_t number) {
  const LinearSlots slots =
      slots_of(site.parameters, module, static_cast<std::uint64_t>(number), site.model.lora);
  ZEROTH_CHECK(slots.weight >= 0, "the unit has no {}", module);
  return slots;
}

const Parameter* find_weight(const std::vector<Parameter>& parameters, const std::string& module) {
  const int index = index_of(parameters, module + ".weight");
  ZEROTH_CHECK(index >= 0, "the unit has no {}", module);
  return &parameters[static_cast<std::size_t>(index)];
}

std::optional<Norm> head_norm(const BuildingSite& site, const std::string& module) {
  return site.model.config.qk_norm ? std::optional<Norm>(std::in_place, site, module)
                                   : std::nullopt;
}

kernels::GateActivation gate_activation(formats::Activation activation) {
  switch (activation) {
    case formats::Activation::kGelu:
      return kernels::GateActivation::kGelu;
    case formats::Activation::kGeluTanh:
      return kernels::GateActivation::kGeluTanh;
    case formats::Activation::kSilu:
      break;
  }
  return kernels::GateActivation::kSilu;
}

}  // namespace

Norm::Norm(const BuildingSite& site, const std::string& module)
    : weight_(find_weight(site.parameters, module)),
      epsilon_(site.model.config.rms_norm_eps),
      form_(site.model.config.norm_plus_one ? kernels::NormWeight::kPlusOne
                                            : kernels::NormWeight::kPlain) {
}

at::Tensor Norm::operator()(const at::Tensor& x) const {
  return kernels::rms_norm(x, weight_->value, epsilon_, form_);
}

kernels::SumAndNorm Norm::of_sum(const at::Tensor& x, const at::Tensor& added) const {
  return kernels::add_rms_norm(x, added, weight_->value, epsilon_, form_);
}

Linear::Linear(const BuildingSite& site, const std::string& module, std::int64_t number)
    : parameters_(&site.parameters), slots_(slots_at(site, module, number)) {
}

at::Tensor Linear::operator()(const ForwardContext& context, const at::Tensor& x) const {
  return adapted_linear(context, *parameters_, slots_, x);
}

Attention::Attention(const BuildingSite& site, const std::string& module)
    : q_(site, module + ".q_proj", kLinearsPerBlock * site.layer),
      k_(site, module + ".k_proj", kLinearsPerBlock * site.layer + 1),
      v_(site, module + ".v_proj", kLinearsPerBlock * site.layer + 2),
      o_(site, module + ".o_proj", kLinearsPerBlock * site.layer + 3),
      q_norm_(head_norm(site, module + ".q_norm")),
      k_norm_(head_norm(site, module + ".k_norm")),
      positions_(site.model.positions),
      layer_(site.layer),
      num_heads_(site.model.config.num_attention_heads),
      num_key_heads_(site.model.config.num_key_value_heads),
      head_dim_(site.model.config.head_dim),
      kind_(site.model.config.kind_index(site.layer)),
      scale_(site.model.config.attention_scale()),
      soft_cap_(site.model.config.attention_softcap) {
}

at::Tensor Attention::turned_heads(const at::Tensor& x,
                                   std::int64_t count,
                                   const std::optional<Norm>& norm) const {
  const at::Tensor heads_BTHD = x.view({x.size(0), x.size(1), count, head_dim_});
  const Positions::Shared& shared = positions_->of(kind_);
  return kernels::rope(norm ? (*norm)(heads_BTHD) : heads_BTHD, shared.cos, shared.sin);
}

at::Tensor Attention::operator()(const ForwardContext& context, const at::Tensor& x_BTC) const {
  const std::int64_t batch = x_BTC.size(0);
  const std::int64_t tokens = x_BTC.size(1);
  const at::Tensor q_BTHD = turned_heads(q_(context, x_BTC), num_heads_, q_norm_);
  const at::Tensor k_BTKD = turned_heads(k_(context, x_BTC), num_key_heads_, k_norm_);
  at::Tensor k_BKSD = k_BTKD.transpose(1, 2);
  at::Tensor v_BKSD =
      v_(context, x_BTC).view({batch, tokens, num_key_heads_, head_dim_}).transpose(1, 2);
  if (context.cache != nullptr) {
    std::tie(k_BKSD, v_BKSD) = context.cache->append(layer_, k_BKSD, v_BKSD);
  }
  const at::Tensor mixed_BHTD = kernels::attention(
      q_BTHD.transpose(1, 2), k_BKSD, v_BKSD, positions_->of(kind_).first_keys, scale_, soft_cap_);
  return o_(context, mixed_BHTD.transpose(1, 2).reshape({batch, tokens, -1}));
}

Mlp::Mlp(const BuildingSite& site, const std::string& module)
    : gate_(site, module + ".gate_proj", kLinearsPerBlock * site.layer + 4),
      up_(site, module + ".up_proj", kLinearsPerBlock * site.layer + 5),
      down_(site, module + ".down_proj", kLinearsPerBlock * site.layer + 6),
      activation_(gate_activation(site.model.config.activation)) {
}

at::Tensor Mlp::operator()(const ForwardContext& context, const at::Tensor& x_BTC) const {
  return down_(context, kernels::gated(gate_(context, x_BTC), up_(context, x_BTC), activation_));
}

}  // namespace zeroth::models
