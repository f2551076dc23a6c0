#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "text/token_table.h"

namespace zeroth::text {

// What is put around one encoded sequence.
struct Surroundings {
  std::vector<TokenId> before;
  std::vector<TokenId> after;
};

[[nodiscard]] Surroundings parse_post_processor(const Json& json, const std::string& where);

}  // namespace zeroth::text
