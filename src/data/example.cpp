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

}  // namespace zeroth::data
