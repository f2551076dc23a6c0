#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "plan/plan.h"

// A plan for programs, and in words.
namespace zeroth::plan {

// What `zeroth plan --format json` prints, but for what only the command knows.
[[nodiscard]] Json to_json(const Plan& plan);

// The purposes with their bytes, in the order of bytes_per_rank; those that need nothing too.
[[nodiscard]] std::vector<std::pair<std::string, Bytes>> by_purpose(const DeviceBytes& bytes);

// What a plan assumes and leaves out, one line each.
[[nodiscard]] std::vector<std::string> notes_of(const Plan& plan);

// What one rank of a run needs, without any choice: for the start table.
// "memory plan: 1.20 GiB per rank at the most, with rows of 2048 tokens: weights ..."
[[nodiscard]] std::string memory_line(const PlanInput& input);
// {"bytes_per_rank": {...}, "total": N}
[[nodiscard]] Json memory_json(const PlanInput& input);

}  // namespace zeroth::plan
