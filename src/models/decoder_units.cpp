#include "models/decoder_units.h"

#include <cmath>

#include "kernels/cross_entropy.h"
#include "kernels/linear_cross_entropy.h"
#include "kernels/soft_cap.h"
#include "kernels/wide.h"

#include <ATen/ops/full.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/ones_like.h>

namespace zeroth::models {
namespace {

constexpr std::int64_t kIgnoreLabel = -100;
constexpr const char* kEmbedding = "model.embed_tokens";
constexpr const char* kHead = "lm_head";

std::optional<Norm> norm_if(bool there, const BuildingSite& site, const std::string& module) {
  return there ? std::optional<Norm>(std::in_place, site, module) : std::nullopt;
}

// Of the same name in all families: before the MLP where no norm stands behind the attention.
const char* name_before_mlp(const formats::ModelConfig& config) {
  return config.post_norms ? "pre_feedforward_layernorm" : "post_attention_layernorm";
}

// Rounded to the weights' type before it multiplies, as Transformers does.
double rounded(double value, at::ScalarType dtype) {
  return at::full({}, value, dtype).to(at::kDouble).item<double>();
}

}  // namespace

Surroundings surroundings_of(const UnitParts& parts) {
  return {
      .config = parts.config,
      .lora = parts.lora,
      .positions = std::make_shared<Positions>(parts.config.layer_kinds, parts.config.head_dim)};
}

Parameter* tied_weight(const UnitParts& parts, const UnitList& units) {
  return parts.shape.units.back().borrowed.empty() ? nullptr : &units.front()->parameters().front();
}

UnitList decoder_units(UnitParts parts) {
  const Surroundings model = surroundings_of(parts);
  UnitList units;
  units.push_back(std::make_unique<EmbeddingUnit>(std::move(parts.parameters.front()), model));
  for (std::int64_t layer = 0; layer < parts.config.num_hidden_layers; ++layer) {
    units.push_back(
        std::make_unique<BlockUnit>(std::move(parts.parameters[units.size()]), model, layer));
  }
  units.push_back(std::make_unique<HeadUnit>(
      std::move(parts.parameters.back()), model, tied_weight(parts, units)));
  return units;
}

EmbeddingUnit::EmbeddingUnit(std::vector<Parameter> parameters, const Surroundings& model)
    : Unit("embedding", std::move(parameters)),
      slots_(slots_of(parameters_, kEmbedding, 0, model.lora)),
      positions_(model.positions),
      scale_(model.config.scale_embedding ? std::sqrt(static_cast<double>(model.config.hidden_size))
                                          : 1.0) {
}

at::Tensor EmbeddingUnit::forward(const ForwardContext& context, const at::Tensor& /*input*/) {
  const at::Tensor hidden_BTC = adapted_embedding(parameters_, slots_, context.batch.ids_BT);
  positions_->prepare(context, kernels::wide_type(hidden_BTC));
  return scale_ == 1.0 ? hidden_BTC : hidden_BTC * rounded(scale_, hidden_BTC.scalar_type());
}

BlockUnit::BlockUnit(std::vector<Parameter> parameters,
                     const Surroundings& model,
                     std::int64_t layer)
    : BlockUnit(
          std::move(parameters), model, layer, "model.layers." + std::to_string(layer) + ".") {
}

BlockUnit::BlockUnit(std::vector<Parameter> parameters,
                     const Surroundings& model,
                     std::int64_t layer,
                     const std::string& prefix)
    : Unit("layers." + std::to_string(layer), std::move(parameters)),
      before_attention_({parameters_, model}, prefix + "input_layernorm"),
      attention_({parameters_, model, layer}, prefix + "self_attn"),
      behind_attention_(norm_if(
          model.config.post_norms, {parameters_, model}, prefix + "post_attention_layernorm")),
      before_mlp_({parameters_, model}, prefix + name_before_mlp(model.config)),
      mlp_({parameters_, model, layer}, prefix + "mlp"),
      behind_mlp_(norm_if(
          model.config.post_norms, {parameters_, model}, prefix + "post_feedforward_layernorm")) {
}

at::Tensor BlockUnit::forward(const ForwardContext& context, const at::Tensor& hidden_BTC) {
  const auto normed = [](const std::optional<Norm>& norm, const at::Tensor& x) {
    return norm ? (*norm)(x) : x;
  };
  const at::Tensor mixed_BTC =
      normed(behind_attention_, attention_(context, before_attention_(hidden_BTC)));
  const kernels::SumAndNorm attended_BTC = before_mlp_.of_sum(hidden_BTC, mixed_BTC);
  return attended_BTC.sum + normed(behind_mlp_, mlp_(context, attended_BTC.normed));
}

HeadUnit::HeadUnit(std::vector<Parameter> parameters, const Surroundings& model, Parameter* tied)
    : Unit("head", std::move(parameters)),
      norm_({parameters_, model}, "model.norm"),
      slots_(slots_of(parameters_, kHead, kHeadModule, model.lora)),
      soft_cap_(model.config.final_softcap) {
  if (tied != nullptr) {
    borrowed_.push_back(tied);
  }
}

at::Tensor HeadUnit::forward(const ForwardContext& context, const at::Tensor& hidden_BTC) {
  const at::Tensor& labels_BT = context.batch.labels_BT;
  if (!labels_BT.defined()) {
    const std::int64_t tokens = hidden_BTC.size(1);
    const at::Tensor normed =
        norm_(context.last_position ? hidden_BTC.narrow(1, tokens - 1, 1) : hidden_BTC);
    return logits(normed);
  }
  // Position t predicts the label at t + 1. Only rows with a target enter the head: the rest cost
  // nothing.
  const std::int64_t predicting = hidden_BTC.size(1) - 1;
  const at::Tensor targets = labels_BT.narrow(1, 1, predicting).reshape({-1});
  const at::Tensor places = (targets != kIgnoreLabel).nonzero().view({-1});
  const at::Tensor hidden = hidden_BTC.narrow(1, 0, predicting).reshape({-1, hidden_BTC.size(2)});
  const at::Tensor normed = norm_(hidden.index_select(0, places));
  const at::Tensor chosen = targets.index_select(0, places);
  if (slots_.lora_a < 0 && slots_.bias < 0) {
    return kernels::linear_cross_entropy(normed, weight(), chosen, soft_cap_);
  }
  const at::Tensor low_input =
      drops(context, slots_) ? dropped_places(context, hidden_BTC, places, normed) : normed;
  return kernels::cross_entropy_sum(uncapped_logits(normed, low_input), chosen, soft_cap_);
}

// Dropout is decided by a place in its row, so the factors are made for all places and those of
// `places` are taken.
at::Tensor HeadUnit::dropped_places(const ForwardContext& context,
                                    const at::Tensor& hidden_BTC,
                                    const at::Tensor& places,
                                    const at::Tensor& normed) const {
  const at::Tensor factors = dropped(context, slots_, at::ones_like(hidden_BTC.detach()));
  const at::Tensor predicting = factors.narrow(1, 0, hidden_BTC.size(1) - 1);
  return normed * predicting.reshape({-1, hidden_BTC.size(2)}).index_select(0, places);
}

kernels::Weight HeadUnit::weight() const {
  return weight_of(borrowed_.empty() ? parameters_[static_cast<std::size_t>(slots_.weight)]
                                     : *borrowed_.front());
}

at::Tensor HeadUnit::uncapped_logits(const at::Tensor& normed, const at::Tensor& low_input) const {
  return adapted_product(parameters_, slots_, weight(), normed, low_input);
}

at::Tensor HeadUnit::logits(const at::Tensor& normed) const {
  const at::Tensor uncapped = uncapped_logits(normed, normed);
  return soft_cap_ > 0 ? kernels::soft_cap(uncapped, soft_cap_) : uncapped;
}

}  // namespace zeroth::models
