#pragma once

#include <string>

#include "formats/model_config.h"
#include "formats/safetensors.h"

namespace zeroth::formats {

// Tells models apart: XXH3-64 over the configuration (but for what Transformers writes about
// itself) and over each tensor's name, type, shape and a sample of its bytes. Two models that were
// trained differently differ in every sample; reading all of a large one would take minutes.
[[nodiscard]] std::string model_fingerprint(const ModelConfig& config, const ModelWeights& weights);

}  // namespace zeroth::formats
