#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zeroth {

[[nodiscard]] std::string join(std::span<const std::string> parts, std::string_view separator);
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);
[[nodiscard]] std::string_view trim(std::string_view text);

// Damerau-Levenshtein distance over bytes.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidates nearest to `word`, nearest first, none farther than a third of its length (at
// least 2).
[[nodiscard]] std::vector<std::string> nearest(std::string_view word,
                                               std::span<const std::string> candidates,
                                               std::size_t at_most = 3);

}  // namespace zeroth
