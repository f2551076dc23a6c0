#pragma once

#include <cstdint>

#include "formats/json_fields.h"

namespace zeroth::formats {

enum class RopeType { kDefault, kLinear, kDynamic, kLlama3, kYarn };

// How positions turn queries and keys, by Transformers' names.
struct RopeConfig {
  RopeType type = RopeType::kDefault;
  double theta = 10000.0;
  double factor = 1.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  double original_max_position_embeddings = 0;
  double beta_fast = 32;
  double beta_slow = 1;
  bool truncate = true;         // yarn: the borders of its ramp are whole numbers
  double attention_factor = 1;  // of cosines and sines
};

// What a config says where its file is silent.
struct RopeDefaults {
  double theta = 10000.0;
  std::int64_t max_position_embeddings = 0;
};

// The one rope of a model: rope_theta and rope_scaling (Transformers 4), or rope_parameters (5).
[[nodiscard]] RopeConfig read_rope(JsonFields& fields, const RopeDefaults& defaults);

// A block of rope settings: the object itself, as rope_scaling and rope_parameters hold it. A
// setting that its rope_type does not know is refused by name.
[[nodiscard]] RopeConfig read_rope_block(JsonFields& block, const RopeDefaults& defaults);

}  // namespace zeroth::formats
