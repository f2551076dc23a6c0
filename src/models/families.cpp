#include "models/families.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "models/decoder_units.h"

namespace zeroth::models {

std::span<const Family> families() {
  static constexpr std::array kFamilies{
      Family{"llama", decoder_units},
      Family{"mistral", decoder_units},
      Family{"qwen2", decoder_units},
      Family{"qwen3", decoder_units},
      Family{"gemma", decoder_units},
      Family{"gemma2", decoder_units},
      Family{"gemma3_text", decoder_units},
  };
  return kFamilies;
}

UnitList make_units(UnitParts parts, std::span<const Family> among) {
  const auto found = std::find_if(among.begin(), among.end(), [&](const Family& family) {
    return family.model_type == parts.config.model_type;
  });
  ZEROTH_CHECK(found != among.end(), "no units for the family {}", parts.config.model_type);
  return found->units(std::move(parts));
}

}  // namespace zeroth::models
