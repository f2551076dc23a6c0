#include <cmath>

#include "e2e/ranks.h"
#include <fmt/format.h>

// The same rows give the same weights in any stage, on any number of ranks, cut in any way: with
// real processes. tests/parity/stages_test.cpp has every combination, on threads.
namespace zeroth::e2e {
namespace {

namespace fs = std::filesystem;

struct Row {
  int ranks = 2;
  int micro = 2;
  int accumulation = 2;
  int stage = 0;
};

class RankParity : public RankTest {
 protected:
  [[nodiscard]] static Words words_of(const Row& row, const std::string& out) {
    return train(out,
                 joined(cut(row.ranks, row.micro, row.accumulation, row.stage),
                        {"--finetuning_type",
                         "full",
                         "--max_steps",
                         "10",
                         "--max_grad_norm",
                         "0.2",
                         "--overwrite_output_dir"}));
  }

  [[nodiscard]] Tensors by_ranks(const Row& row) const {
    (void)good(words_of(row, "out"));
    expect_clipped();
    return tensors_of(path("out/model.safetensors"));
  }

  [[nodiscard]] Tensors by_mpirun(const Words& hosts, const Row& row) const {
    const Words words = words_of(row, "out");
    const testing::Outcome outcome = testing::run(under_mpirun(hosts, words));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    return tensors_of(path("out/model.safetensors"));
  }

  // The weights of the stages, which agree with those of one rank and, in pairs, with each other.
  [[nodiscard]] std::vector<Tensors> in_every_stage(Row row) const {
    const Tensors alone = by_ranks({.ranks = 1, .micro = 8, .accumulation = 1});
    std::vector<Tensors> stages;
    for (row.stage = 0; row.stage <= 3; ++row.stage) {
      stages.push_back(by_ranks(row));
      EXPECT_LT(relative_distance(stages.back(), alone), 1e-5) << "stage " << row.stage;
    }
    EXPECT_EQ(stages[0], stages[1]);
    EXPECT_EQ(stages[2], stages[3]);
    return stages;
  }

 private:
  // Or the comparison would not see a norm that is wrong.
  void expect_clipped() const {
    const auto updates = records_of(path("out"), "update");
    ASSERT_EQ(updates.size(), 10U);
    for (const Json& update : updates) {
      EXPECT_LT(update.at("clip_factor").get<double>(), 1.0);
    }
  }
};

// The same bits by any launcher; between hosts too, for what is added is added in rank order.
TEST_F(RankParity, TwoRanksOfTwoByTwoInEveryStage) {
  const std::vector<Tensors> stages = in_every_stage({.ranks = 2, .micro = 2, .accumulation = 2});
  if (!has_mpirun()) {
    GTEST_SKIP() << "needs mpirun";
  }
  for (const int stage : {1, 3}) {
    const Row row{.ranks = 2, .micro = 2, .accumulation = 2, .stage = stage};
    EXPECT_EQ(by_mpirun({"a", "a"}, row), stages[static_cast<std::size_t>(stage)])
        << "stage " << stage;
  }
}

TEST_F(RankParity, FourRanksOfOneByTwoInEveryStageAlsoOnTwoHosts) {
  const std::vector<Tensors> stages = in_every_stage({.ranks = 4, .micro = 1, .accumulation = 2});
  if (!has_mpirun()) {
    GTEST_SKIP() << "needs mpirun";
  }
  for (const int stage : {1, 3}) {
    const Row row{.ranks = 4, .micro = 1, .accumulation = 2, .stage = stage};
    EXPECT_EQ(by_mpirun({"a", "a", "b", "b"}, row), stages[static_cast<std::size_t>(stage)])
        << "stage " << stage;
  }
}

}  // namespace
}  // namespace zeroth::e2e
