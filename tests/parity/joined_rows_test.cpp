#include "data/encode.h"
#include "data/join_rows.h"
#include "parity/family_folders.h"
#include "parity/support.h"
#include "train/batches.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>

// Rows that are joined (neat_packing) are computed as if each stood alone: same losses, same
// gradients (case D18). Against computing them apart, padded, for a model of each family, with and
// without windows.
namespace zeroth::parity {
namespace {

class JoinedRows : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(All,
                         JoinedRows,
                         testing::ValuesIn(golden_families()),
                         [](const auto& test) { return test.param; });

// Lengths below, at and above the windows of the small models; a question of a third is masked.
data::Dataset rows() {
  at::manual_seed(23);
  data::Dataset dataset;
  for (const std::int64_t length : {5, 30, 2, 17, 9, 24, 13}) {
    const at::Tensor ids = at::randint(3, 250, {length}, at::kLong);
    data::Example example;
    for (std::int64_t i = 0; i < length; ++i) {
      const auto id = static_cast<text::TokenId>(ids[i].item<std::int64_t>());
      example.input_ids.push_back(id);
      example.labels.push_back(i < length / 3 ? data::kIgnoreLabel : id);
    }
    dataset.examples.push_back(std::move(example));
  }
  data::number_rows(dataset);
  return dataset;
}

models::TokenBatch batch_of_all(const data::Dataset& dataset) {
  std::vector<std::int64_t> all(dataset.examples.size());
  std::iota(all.begin(), all.end(), 0);
  return train::token_batch(dataset, all, /*pad_id=*/0);
}

struct Computed {
  double loss = 0;
  std::map<std::string, at::Tensor> gradients;
};

Computed compute(const std::filesystem::path& folder,
                 const data::Dataset& dataset,
                 bool recompute) {
  TraineeOptions options{.folder = folder};
  options.engine.recompute_activations = recompute;
  Trainee trainee = make_trainee(std::move(options));
  Computed result;
  const engine::Loss loss = trainee.engine->forward(batch_of_all(dataset));
  result.loss = loss.sum / static_cast<double>(loss.weight);
  trainee.engine->backward(loss);
  for (const auto& unit : trainee.model.units) {
    for (const models::Parameter& parameter : unit->parameters()) {
      result.gradients[parameter.name] = trainee.engine->gradient_value(parameter.name).clone();
    }
  }
  return result;
}

TEST_P(JoinedRows, D18_SeeNothingOfEachOther) {
  const FamilyFolder folder(GetParam());
  const data::Dataset apart = rows();
  data::Dataset joined = apart;
  data::join_rows(joined, 40);
  ASSERT_LT(joined.examples.size(), apart.examples.size());
  const Computed expected = compute(folder.path(), apart, false);
  for (const bool recompute : {false, true}) {
    const Computed computed = compute(folder.path(), joined, recompute);
    EXPECT_NEAR(computed.loss, expected.loss, 1e-5);
    for (const auto& [name, gradient] : expected.gradients) {
      EXPECT_LT(relative_norm(computed.gradients.at(name), gradient), 1e-5) << name;
    }
  }
}

// Without the marks the rows see each other: what the test above compares can be told apart.
TEST_P(JoinedRows, WouldBeOthersIfTheySaw) {
  const FamilyFolder folder(GetParam());
  data::Dataset joined = rows();
  data::join_rows(joined, 40);
  const double apart = compute(folder.path(), joined, false).loss;
  for (data::Example& example : joined.examples) {
    example.begins.clear();
  }
  EXPECT_GT(std::abs(compute(folder.path(), joined, false).loss - apart), 1e-4);
}

}  // namespace
}  // namespace zeroth::parity
