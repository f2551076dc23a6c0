#include "shapes/families/gemma_fields.h"

#include <fmt/format.h>

namespace zeroth::shapes {
namespace {

using formats::Activation;

Activation gemma_activation(formats::JsonFields& fields) {
  const std::string old_name = fields.text_or("hidden_act", "gelu");
  const std::string act = fields.text_or("hidden_activation", "gelu_pytorch_tanh");
  if (old_name != "gelu" && old_name != act) {
    fields.fault("hidden_act",
                 fmt::format("is not hidden_activation = \"{}\", and releases of Transformers "
                             "differ in which of them counts; write the same in both",
                             act));
  }
  return read_activation(fields, "hidden_activation", Activation::kGeluTanh);
}

}  // namespace

void read_gemma(formats::JsonFields& fields,
                const GemmaDefaults& defaults,
                formats::ModelConfig& config) {
  read_decoder(fields,
               {.head_dim = 256,
                .num_key_value_heads = defaults.num_key_value_heads,
                .max_position_embeddings = defaults.max_position_embeddings,
                .tie_word_embeddings = true},
               config);
  config.qkv_bias = config.output_bias = fields.flag_or("attention_bias", false);
  config.activation = gemma_activation(fields);
  config.norm_plus_one = true;
  config.scale_embedding = true;
  if (fields.flag_or("use_bidirectional_attention", false)) {
    fields.unsupported("use_bidirectional_attention", "only causal attention is built");
  }
}

void read_gemma2_features(formats::JsonFields& fields,
                          double final_softcap,
                          formats::ModelConfig& config) {
  config.post_norms = true;
  config.query_pre_attn_scalar = fields.positive_or("query_pre_attn_scalar", 256);
  config.final_softcap = positive_or_none(fields, "final_logit_softcapping", final_softcap);
}

}  // namespace zeroth::shapes
