#include "formats/model_config.h"

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "formats/decoder_fields.h"
#include "formats/json_fields.h"
#include "formats/strict_json.h"

namespace zeroth::formats {

double ModelConfig::attention_scale() const {
  return 1.0 / std::sqrt(query_pre_attn_scalar.value_or(static_cast<double>(head_dim)));
}

bool ModelConfig::has_dynamic_rope() const {
  return std::any_of(layer_kinds.begin(), layer_kinds.end(), [](const LayerKind& kind) {
    return kind.rope.type == RopeType::kDynamic;
  });
}

GenerationDefaults read_generation_defaults(const std::filesystem::path& model_folder) {
  const std::filesystem::path path = model_folder / "generation_config.json";
  if (!std::filesystem::exists(path)) {
    return {};
  }
  const Json raw =
      parse_object(read_file(path, ErrorKind::kModel), path.string(), ErrorKind::kModel);
  JsonFields fields(raw, path.string());
  GenerationDefaults defaults;
  defaults.eos_token_ids = fields.ids("eos_token_id");
  // Early LLaMA conversions write -1 where there is no padding token.
  if (fields.value("pad_token_id") != -1) {
    defaults.pad_token_id = read_one_id(fields, "pad_token_id");
  }
  fields.require_sound("Correct the file, or remove it.", "");
  return defaults;
}

}  // namespace zeroth::formats
