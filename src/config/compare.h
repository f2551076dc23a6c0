#pragma once

#include <string>
#include <vector>

#include "config/resolve.h"

// Two set-ups side by side: `zeroth check ... --diff OTHER`.
namespace zeroth::config {

struct Difference {
  std::string key;
  Json value;
  std::string source;
  Json other_value;
  std::string other_source;
};

// What is in force in `resolution` and otherwise in the file that its --diff names (a recipe, a
// ds_config.json or an Accelerate YAML, told apart by their keys), read for the same number of
// ranks unless it says its own. Empty without --diff. An Error of kConfig where the file cannot be
// read; what is wrong in it goes to the problems of `resolution`.
[[nodiscard]] std::vector<Difference> compare(Resolution& resolution,
                                              const Environment& environment);

[[nodiscard]] std::string difference_lines(const std::vector<Difference>& differences);

[[nodiscard]] Json to_json(const std::vector<Difference>& differences);

}  // namespace zeroth::config
