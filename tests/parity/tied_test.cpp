#include "base/file.h"
#include "formats/model_config.h"
#include "formats/test_files.h"
#include "parity/placements.h"
#include "shapes/families.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

// A head that reads the embedding's weight: one unit lends its parameters to another, which is far
// from it in both directions, and gradients come from both.
namespace zeroth::parity {
namespace {

namespace fs = std::filesystem;

constexpr auto kTied = "model.embed_tokens.weight";

// The reference model, whose head is told to read the embedding: its own weight stays in the file.
class Tied : public ::testing::Test {
 protected:
  Tied() {
    const fs::path source = golden() / "transformers/llama3";
    fs::copy(source / "model.safetensors", folder_.path());
    std::string config = read_file(source / "config.json", ErrorKind::kModel);
    const std::string untied = "\"tie_word_embeddings\": false";
    config.replace(config.find(untied), untied.size(), "\"tie_word_embeddings\": true");
    (void)folder_.write("config.json", config);
  }

  [[nodiscard]] Case with(Case test) const {
    test.folder = folder_.path();
    return test;
  }

  // The gradient of the mean loss over all rows: one graph over the whole model, one backward, and
  // neither engine nor ranks.
  [[nodiscard]] at::Tensor plain_gradient(std::int64_t rows) const {
    models::Model model =
        models::load_model(shapes::read_model_config(folder_.path() / "config.json"),
                           std::make_shared<const formats::ModelWeights>(folder_.path()),
                           {});
    for (const auto& unit : model.units) {
      for (models::Parameter& parameter : unit->parameters()) {
        parameter.materialize(at::kFloat);
      }
    }
    const at::Tensor tied = model.find(kTied)->value.requires_grad_(true);
    const models::TokenBatch batch = all_rows(rows);
    at::Tensor value;
    for (const auto& unit : model.units) {
      value = unit->forward({.batch = batch, .training = true}, value);
    }
    value.backward();
    return tied.grad() / batch.num_targets;
  }

 private:
  zeroth::testing::TemporaryFolder folder_;
};

// The same of a run's ranks together, after all micro-steps of one window.
at::Tensor gathered_gradient(const Case& test) {
  std::vector<at::Tensor> gradients(static_cast<std::size_t>(test.ranks));
  on_threads(test.ranks, [&](const std::shared_ptr<comm::Communicator>& comm) {
    const Trainee trainee = trainee_of(test, comm);
    engine::Engine& engine = *trainee.engine;
    const auto micro_steps = micro_steps_of(test, comm->rank());
    engine.set_window(static_cast<std::int64_t>(micro_steps.size()));
    for (std::size_t step = 0; step < micro_steps.size(); ++step) {
      engine.backward(engine.forward(micro_steps[step]));
      if (step + 1 < micro_steps.size()) {
        (void)engine.step();
      }
    }
    gradients[static_cast<std::size_t>(comm->rank())] = engine.gradient_value(kTied).clone();
  });
  return gradients.front();
}

TEST_F(Tied, TheHeadHasNoWeightOfItsOwn) {
  const Outcome tied = run(with({.updates = 1}));
  const Outcome untied = run({.updates = 1});
  EXPECT_EQ(untied.trainable - tied.trainable, 512 * 32);
  EXPECT_NE(tied.losses, untied.losses);
}

TEST_F(Tied, GradientsAreThoseOfOnePlainGraph) {
  const at::Tensor expected = plain_gradient(8);
  for (const int ranks : {1, 2}) {
    for (int stage = 0; stage <= 3; ++stage) {
      const Case test = with({.stage = stage, .ranks = ranks, .micro_rows = 2});
      SCOPED_TRACE(name_of(test));
      EXPECT_LT(relative_norm(gathered_gradient(test), expected), 1e-5);
    }
    const Case on_file = resting(with({.stage = 3, .ranks = ranks, .micro_rows = 2}), {true, true});
    EXPECT_LT(relative_norm(gathered_gradient(on_file), expected), 1e-5) << name_of(on_file);
  }
}

TEST_F(Tied, StagesTrainAlike) {
  const Outcome reference = run(with({.updates = 3}));
  for (const int ranks : {1, 2}) {
    Case test = with({.ranks = ranks, .micro_rows = 2, .updates = 3});
    for (test.stage = 0; test.stage <= 3; ++test.stage) {
      SCOPED_TRACE(name_of(test));
      expect_near(run(test), reference, 1e-5);
    }
  }
}

TEST_F(Tied, StagesAgreeInBits) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const Case test = with({.ranks = 2, .micro_rows = 2, .dtype = dtype, .updates = 3});
    const auto at_stage = [&](int stage) {
      Case other = test;
      other.stage = stage;
      return other;
    };
    expect_same_bits(at_stage(0), at_stage(1));
    expect_same_bits(at_stage(2), at_stage(3));
  }
}

TEST_F(Tied, FilesChangeNoBit) {
  for (const int ranks : {1, 2}) {
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      for (int stage = 0; stage <= 3; ++stage) {
        expect_same_bits_on_file(
            with({.stage = stage, .ranks = ranks, .micro_rows = 2, .dtype = dtype, .updates = 3}));
      }
    }
  }
}

// What a lender takes longer than others: a buffer, a gathered unit, a slot for its gradients.
TEST_F(Tied, ScarceBuffersChangeNoBit) {
  Case test = with({.stage = 3, .ranks = 2, .micro_rows = 2, .updates = 3, .recompute = true});
  test.tuning.prefetch_elements = 0;
  test.tuning.max_live_elements = 1;
  test.tuning.resting.parameter_buffers = 1;
  expect_same_bits_on_file(test);
  test.tuning.overlap = false;
  expect_same_bits_on_file(test);
  test.tuning.persistence_elements = 100;  // the head's norm stays, the lender comes and goes
  expect_same_bits_on_file(test);
}

}  // namespace
}  // namespace zeroth::parity
