#include "shapes/families/qwen_layers.h"

namespace zeroth::shapes {

void read_qwen_layers(formats::JsonFields& fields, formats::ModelConfig& config) {
  constexpr formats::JsonFields::Range kLayers{0, 1 << 20};
  const formats::RopeConfig rope =
      read_rope(fields, {.max_position_embeddings = config.max_position_embeddings});
  const std::int64_t window = read_window(fields, 4096);
  const std::int64_t first = fields.integer_or("max_window_layers", kLayers, 28);
  read_layer_kinds(fields,
                   {.window = fields.flag_or("use_sliding_window", false) ? window : 0,
                    .slides = [first](std::int64_t layer) { return layer >= first; },
                    .full_rope = rope,
                    .window_rope = rope},
                   config);
}

}  // namespace zeroth::shapes
