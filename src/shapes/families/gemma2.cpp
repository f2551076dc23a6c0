#include "shapes/decoder_shape.h"
#include "shapes/families.h"
#include "shapes/families/gemma_fields.h"

namespace zeroth::shapes {
namespace {

void read(formats::JsonFields& fields, formats::ModelConfig& config) {
  read_gemma(fields, {}, config);
  read_gemma2_features(fields, 30, config);
  config.attention_softcap = positive_or_none(fields, "attn_logit_softcapping", 50);
  const formats::RopeConfig rope =
      read_rope(fields, {.max_position_embeddings = config.max_position_embeddings});
  const std::int64_t window = read_window(fields, 4096);
  // The first files carry the window under a second name, which Transformers does not read.
  if (fields.has("sliding_window_size") && fields.value("sliding_window_size") != window) {
    fields.fault("sliding_window_size", "stands beside another sliding_window; keep one");
  }
  const auto every_other = [](std::int64_t layer) { return layer % 2 == 0; };
  read_layer_kinds(
      fields,
      {.window = window, .slides = every_other, .full_rope = rope, .window_rope = rope},
      config);
}

}  // namespace

// Gemma 2 (Riviere et al., 2024): four norms, soft-caps, every other layer slides.
Family gemma2() {
  return {"gemma2", "Gemma2ForCausalLM", read, decoder_shape};
}

}  // namespace zeroth::shapes
