#pragma once

#include <string>
#include <string_view>
#include <vector>

// A second reader of configuration files, written for the proofs and independent of src/config: it
// knows no key and refuses nothing, it only lists what stands in the text.
namespace zeroth::config {

// The path of each leaf in the order of the text: a scalar, a list or an empty block.
[[nodiscard]] std::vector<std::string> leaves_of_json(std::string_view text);

// By yaml-cpp; throws what it throws.
[[nodiscard]] std::vector<std::string> leaves_of_yaml(std::string_view text);

}  // namespace zeroth::config
