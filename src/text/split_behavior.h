#pragma once

#include <string_view>
#include <vector>

#include "text/fields.h"
#include "text/regex.h"

namespace zeroth::text {

// What becomes of the delimiters when text is split at them.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

[[nodiscard]] SplitBehavior parse_split_behavior(Fields& fields);

// Appends to `parts` the pieces of a text of `length` bytes whose delimiters are `delimiters` (in
// order). `invert`: everything but them is a delimiter.
void split_at(const std::vector<Span>& delimiters,
              std::size_t length,
              SplitBehavior behavior,
              bool invert,
              std::vector<Span>& parts);

}  // namespace zeroth::text
