#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "memory/tally.h"
#include "plan/input.h"
#include "train/trainer.h"

namespace zeroth::worker {

// What the kernel says of this process (PSS): before the model was loaded, and at the end. Memory
// that was freed stays with the process, so the end is near its peak.
struct ProcessBytes {
  std::int64_t before = 0;
  std::int64_t at_end = 0;
};

// What a rank held at the most, counted, beside the plan for the largest micro-batch that came, and
// beside its process.
struct MemoryReport {
  std::int64_t counted = 0;
  memory::ByPurpose by_purpose{};
  train::MicroBatchSize largest;  // no rows: nothing was trained, and there is no plan
  std::int64_t planned = 0;
  ProcessBytes process;
};

[[nodiscard]] MemoryReport memory_report(const plan::PlanInput& input,
                                         const memory::Tally& tally,
                                         const train::MicroBatchSize& largest,
                                         const ProcessBytes& process);

// A line for people; a deviation from the plan of more than a tenth is marked.
[[nodiscard]] std::string text_of(const MemoryReport& report);
[[nodiscard]] Json json_of(const MemoryReport& report);

}  // namespace zeroth::worker
