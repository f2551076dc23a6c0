#pragma once

#include "formats/decoder_fields.h"

namespace zeroth::shapes {

// Qwen2 and 3: with use_sliding_window, layers from max_window_layers on slide; without it, no
// window is in force whatever sliding_window says.
void read_qwen_layers(formats::JsonFields& fields, formats::ModelConfig& config);

}  // namespace zeroth::shapes
