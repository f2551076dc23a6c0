#include "shapes/decoder_shape.h"
#include "shapes/families.h"

namespace zeroth::shapes {
namespace {

void read(formats::JsonFields& fields, formats::ModelConfig& config) {
  read_decoder(fields, {.num_key_value_heads = 8, .max_position_embeddings = 4096 * 32}, config);
  config.activation = read_activation(fields, "hidden_act", formats::Activation::kSilu);
  const formats::RopeConfig rope =
      read_rope(fields, {.max_position_embeddings = config.max_position_embeddings});
  const auto all_layers = [](std::int64_t) { return true; };
  read_layer_kinds(fields,
                   {.window = read_window(fields, 4096),
                    .slides = all_layers,
                    .full_rope = rope,
                    .window_rope = rope},
                   config);
}

}  // namespace

// Mistral 7B and Nemo (Jiang et al., 2023): every layer may slide.
Family mistral() {
  return {"mistral", "MistralForCausalLM", read, decoder_shape};
}

}  // namespace zeroth::shapes
