#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "cli/inspect_compare.h"
#include "cli/inspect_read.h"

namespace zeroth::cli {

// For people: tensors of repeated layers stand in one line.
[[nodiscard]] std::string inspect_page(const Inspected& found);
// Both in short, and how they differ.
[[nodiscard]] std::string comparison_page(const Comparison& comparison,
                                          const Inspected& here,
                                          const Inspected& there);

// For programs: every tensor by itself.
[[nodiscard]] Json to_json(const Inspected& found);
[[nodiscard]] Json to_json(const Comparison& comparison);

}  // namespace zeroth::cli
