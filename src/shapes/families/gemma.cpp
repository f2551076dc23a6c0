#include "shapes/decoder_shape.h"
#include "shapes/families.h"
#include "shapes/families/gemma_fields.h"

namespace zeroth::shapes {
namespace {

void read(formats::JsonFields& fields, formats::ModelConfig& config) {
  read_gemma(fields, {.num_key_value_heads = 16}, config);
  const formats::RopeConfig rope =
      read_rope(fields, {.max_position_embeddings = config.max_position_embeddings});
  read_layer_kinds(fields, {.full_rope = rope}, config);
}

}  // namespace

// Gemma 1 (Mesnard et al., 2024).
Family gemma() {
  return {"gemma", "GemmaForCausalLM", read, decoder_shape};
}

}  // namespace zeroth::shapes
