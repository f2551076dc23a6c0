#include "shapes/decoder_shape.h"
#include "shapes/families.h"

namespace zeroth::shapes {
namespace {

void read(formats::JsonFields& fields, formats::ModelConfig& config) {
  read_decoder(fields, {}, config);
  config.qkv_bias = config.output_bias = fields.flag_or("attention_bias", false);
  config.mlp_bias = fields.flag_or("mlp_bias", false);
  config.activation = read_activation(fields, "hidden_act", formats::Activation::kSilu);
  const formats::RopeConfig rope =
      read_rope(fields, {.max_position_embeddings = config.max_position_embeddings});
  read_layer_kinds(fields, {.full_rope = rope}, config);
}

}  // namespace

// LLaMA 1 to 3 (Touvron et al., 2023): the plain form of all that follow.
Family llama() {
  return {"llama", "LlamaForCausalLM", read, decoder_shape};
}

}  // namespace zeroth::shapes
