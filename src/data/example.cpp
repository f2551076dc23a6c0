#include "data/example.h"

#include <algorithm>

namespace zeroth::data {

std::int64_t Example::num_targets() const noexcept {
  if (labels.empty()) {
    return 0;
  }
  return std::count_if(
      labels.begin() + 1, labels.end(), [](text::TokenId label) { return label != kIgnoreLabel; });
}

std::int64_t Dataset::num_rows() const noexcept {
  std::int64_t rows = 0;
  for (const Example& example : examples) {
    rows += std::max<std::int64_t>(1, static_cast<std::int64_t>(example.begins.size()));
  }
  return rows;
}

}  // namespace zeroth::data
