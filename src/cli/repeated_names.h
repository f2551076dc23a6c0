#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zeroth::cli {

// Things that differ in the numbers within their names alone, in one line.
struct RepeatedName {
  std::string name;  // "model.layers.{0..29}.mlp.up_proj.weight"; as it is, where it stands alone
  std::string form;
  std::int64_t count = 1;
};

struct NamedForm {
  std::string name;
  std::string form;  // only those of one form come together: "BF16 [1536, 576]"
};

// "model.layers.{}.mlp.up_proj.weight": equal for those that come together.
[[nodiscard]] std::string without_numbers(const std::string& name);

// In the order in which the first of each comes. Numbers are whole parts between dots.
[[nodiscard]] std::vector<RepeatedName> repeated_names(const std::vector<NamedForm>& things);

}  // namespace zeroth::cli
