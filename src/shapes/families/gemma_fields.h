#pragma once

#include "formats/decoder_fields.h"

namespace zeroth::shapes {

struct GemmaDefaults {
  std::int64_t num_key_value_heads = 4;
  std::int64_t max_position_embeddings = 8192;
};

// What all Gemmas share: norms by 1 + weight, a scaled embedding, a tied head of size 256, gelu.
// hidden_activation counts; of hidden_act early files say "gelu" and mean the tanh form.
void read_gemma(formats::JsonFields& fields,
                const GemmaDefaults& defaults,
                formats::ModelConfig& config);

// What Gemma 2 and 3 share: norms behind attention and MLP, the scale of queries, the soft-cap of
// logits, which is `final_softcap` where the file says nothing.
void read_gemma2_features(formats::JsonFields& fields,
                          double final_softcap,
                          formats::ModelConfig& config);

}  // namespace zeroth::shapes
