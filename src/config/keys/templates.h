#pragma once

#include <map>
#include <string>

// LLaMA-Factory's names of prompt formats that do not act, each with the reason.
namespace zeroth::config {

[[nodiscard]] std::map<std::string, std::string> templates_to_come();
[[nodiscard]] std::map<std::string, std::string> templates_with_media();

}  // namespace zeroth::config
