#include "parity/placements.h"

#include <gtest/gtest.h>

namespace zeroth::parity {

using zero::Place;

Case resting(Case test, const Places& places) {
  zero::Resting& resting = test.tuning.resting;
  resting.optimizer_folder = resting.parameter_folder = std::filesystem::temp_directory_path();
  resting.optimizer = places.optimizer_on_file ? Place::kFile : Place::kMemory;
  resting.parameters = places.parameters_on_file ? Place::kFile : Place::kMemory;
  resting.io_kind = offload::IoKind::kThreads;  // without a look at the disk's speed
  return test;
}

void expect_same_bits_on_file(const Case& test) {
  SCOPED_TRACE(name_of(test));
  const Outcome in_memory = run(test);
  EXPECT_EQ(in_memory.offloaded.read + in_memory.offloaded.written, 0);
  for (const Places& places : kOnFile) {
    if (places.parameters_on_file && test.stage < 3) {
      continue;
    }
    const Case on_file = resting(test, places);
    SCOPED_TRACE(name_of(on_file));
    const Outcome outcome = run(on_file);
    expect_same_bits(in_memory, outcome);
    EXPECT_GT(outcome.offloaded.read, 0);
    EXPECT_GT(outcome.offloaded.written, 0);
  }
}

}  // namespace zeroth::parity
