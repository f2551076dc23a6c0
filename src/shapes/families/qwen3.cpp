#include "shapes/decoder_shape.h"
#include "shapes/families.h"
#include "shapes/families/qwen_layers.h"

namespace zeroth::shapes {
namespace {

void read(formats::JsonFields& fields, formats::ModelConfig& config) {
  read_decoder(fields,
               {.head_dim = 128, .num_key_value_heads = 32, .max_position_embeddings = 32768},
               config);
  config.qkv_bias = config.output_bias = fields.flag_or("attention_bias", false);
  config.qk_norm = true;
  config.activation = read_activation(fields, "hidden_act", formats::Activation::kSilu);
  read_qwen_layers(fields, config);
}

}  // namespace

// Qwen3 (Yang et al., 2025), dense: a norm on each head of q and k.
Family qwen3() {
  return {"qwen3", "Qwen3ForCausalLM", read, decoder_shape};
}

}  // namespace zeroth::shapes
