#include "parity/family_folders.h"
#include "parity/runs.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>

// A model of each family on one rank and two, at every stage, all weights or adapters: one grid
// gives the same bits at all stages, and two ranks the numbers of one.
namespace zeroth::parity {
namespace {

class FamilyStages : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(All,
                         FamilyStages,
                         testing::ValuesIn(golden_families()),
                         [](const auto& test) { return test.param; });

TEST_P(FamilyStages, GiveTheSameUpdates) {
  const FamilyFolder folder(GetParam());
  for (const bool lora : {false, true}) {
    std::optional<Outcome> alone;
    for (const int ranks : {1, 2}) {
      std::optional<Outcome> of_grid;
      for (int stage = 0; stage <= 3; ++stage) {
        const Case test{.stage = stage,
                        .ranks = ranks,
                        .micro_rows = 8 / ranks,
                        .lora = lora,
                        .updates = 2,
                        .recompute = stage == 2,
                        .folder = folder.path()};
        SCOPED_TRACE(name_of(test));
        const Outcome outcome = run(test);
        if (of_grid) {
          expect_same_bits(outcome, *of_grid);
        }
        of_grid = of_grid ? of_grid : outcome;
        alone = alone ? alone : outcome;
        // Adapters start at 0: AdamW divides by gradients that are near it, noise included.
        expect_near(outcome, *alone, lora ? 2e-4 : 1e-5);
      }
    }
  }
}

}  // namespace
}  // namespace zeroth::parity
