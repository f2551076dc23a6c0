#include "parity/runs.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>

// The stage costs memory, not meaning: the same rows give the same weights in any stage, on any
// number of ranks, cut in any way. Ranks are threads here.
namespace zeroth::parity {
namespace {

// What is trained, and how; the cuts of one are compared in one test, for they share a reference
// and the time that a program takes to start.
std::vector<Case> kinds() {
  return {{},
          {.rule = Rule::kSgd},
          {.lora = true},
          {.lora = true, .rule = Rule::kSgd},
          {.lora = true, .dropout = 0.3},
          {.lora = true, .rule = Rule::kSgd, .dropout = 0.3}};
}

// Every stage of every cut but the plain one.
std::vector<Case> cuts_of(const Case& kind) {
  std::vector<Case> cases;
  for (const auto& [ranks, micro] : {std::pair{1, 8}, {1, 1}, {2, 2}, {4, 1}}) {
    for (int stage = 0; stage <= 3; ++stage) {
      Case& cut = cases.emplace_back(kind);
      cut.stage = stage;
      cut.ranks = ranks;
      cut.micro_rows = micro;
    }
  }
  cases.erase(cases.begin());
  return cases;
}

class Stages : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Kinds, Stages, testing::ValuesIn(kinds()), [](const auto& test) {
  const Case& kind = test.param;
  return std::string(kind.lora ? "lora" : "full") +
         ((kind.rule == Rule::kSgd) ? "_sgd" : "_adamw") + (kind.dropout > 0 ? "_dropout" : "");
});

// One rank, eight rows at once, no stage: what all others are held against.
TEST_P(Stages, N20_GiveTheWeightsOfOneRankWithoutStages) {
  const Outcome reference = run(GetParam());
  for (const Case& test : cuts_of(GetParam())) {
    SCOPED_TRACE(name_of(test));
    expect_near(run(test), reference, 1e-5);
  }
}

TEST(N20, StagesTrainAlikeAtEveryStep) {
  Case test{.ranks = 2, .micro_rows = 2, .updates = 20};
  const Outcome reference = run(test);
  for (test.stage = 1; test.stage <= 3; ++test.stage) {
    SCOPED_TRACE(name_of(test));
    expect_near(run(test), reference, 1e-6);
  }
}

TEST(StageBits, ZeroAndOneAgreeAndTwoAndThree) {
  for (const int ranks : {2, 4}) {
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      expect_same_bits({.stage = 0, .ranks = ranks, .micro_rows = 1, .dtype = dtype},
                       {.stage = 1, .ranks = ranks, .micro_rows = 1, .dtype = dtype});
      expect_same_bits({.stage = 2, .ranks = ranks, .micro_rows = 1, .dtype = dtype},
                       {.stage = 3, .ranks = ranks, .micro_rows = 1, .dtype = dtype});
    }
  }
}

TEST(StageBits, AllFourAgreeWithoutAccumulation) {
  for (const bool lora : {false, true}) {
    const Case plain{.stage = 0, .ranks = 2, .micro_rows = 4, .lora = lora};
    for (int stage = 1; stage <= 3; ++stage) {
      Case other = plain;
      other.stage = stage;
      expect_same_bits(plain, other);
    }
  }
}

TEST(StageBits, BucketsChangeNone) {
  for (int stage = 0; stage <= 3; ++stage) {
    expect_same_bits(
        {.stage = stage, .ranks = 2, .micro_rows = 2},
        {.stage = stage, .ranks = 2, .micro_rows = 2, .tuning = {.reduce_bucket_elements = 700}});
  }
}

// DESIGN contract 3, bytes per trainable parameter in mixed precision.
TEST(ModelStates, TakeTheBytesOfTheFormulas) {
  for (const int ranks : {1, 2, 4}) {
    const auto n = static_cast<double>(ranks);
    const std::vector<double> expected{18.0, 6.0 + 12.0 / n, 2.0 + 16.0 / n, 18.0 / n};
    for (int stage = 0; stage <= 3; ++stage) {
      const Outcome outcome =
          run({.stage = stage, .ranks = ranks, .micro_rows = 2, .dtype = at::kBFloat16});
      const double bytes =
          static_cast<double>(outcome.model_state_bytes) / static_cast<double>(outcome.trainable);
      EXPECT_NEAR(bytes / expected[static_cast<std::size_t>(stage)], 1.0, 0.02)
          << "stage " << stage << " on " << ranks << " ranks";
    }
  }
}

}  // namespace
}  // namespace zeroth::parity
