#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "task.h"

namespace zeroth::quickstart {

// What must hold for the quickstart to show that a rule was learnt, not a table.
struct DataFacts {
  std::size_t num_train = 0;
  std::size_t num_validation = 0;
  std::size_t num_heldout = 0;
  std::size_t num_heldout_english = 0;   // the rest is Chinese
  std::size_t num_distinct_answers = 0;  // over all rows
  std::size_t num_shared_inputs =
      0;  // inputs of held-out or validation rows that another file has too
  std::size_t num_nearest_right =
      0;  // held-out rows that the nearest training row's answer would get right
};

[[nodiscard]] TaskData read_task_data(const std::filesystem::path& folder);
[[nodiscard]] DataFacts measure(const TaskData& data);
[[nodiscard]] std::string describe(const DataFacts& facts);

// kData, naming each promise that is broken: no shared inputs, at least 1,000 distinct answers,
// nearest training row under 10 %, both languages present.
void require_promises(const DataFacts& facts);

}  // namespace zeroth::quickstart
