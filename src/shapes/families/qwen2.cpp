#include "shapes/decoder_shape.h"
#include "shapes/families.h"
#include "shapes/families/qwen_layers.h"

namespace zeroth::shapes {
namespace {

void read(formats::JsonFields& fields, formats::ModelConfig& config) {
  read_decoder(fields, {.num_key_value_heads = 32, .max_position_embeddings = 32768}, config);
  config.qkv_bias = true;
  config.activation = read_activation(fields, "hidden_act", formats::Activation::kSilu);
  read_qwen_layers(fields, config);
}

}  // namespace

// Qwen2 and 2.5 (Yang et al., 2024): biases on q, k and v.
Family qwen2() {
  return {"qwen2", "Qwen2ForCausalLM", read, decoder_shape};
}

}  // namespace zeroth::shapes
