#include "base/error.h"
#include "generate/generate.h"
#include "parity/family_folders.h"
#include "parity/support.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>

// Every family against a selection of what Transformers' own code computed, which stands in
// tests/golden/families (make_families.py tells what it holds). families_test.cpp has all of it.
namespace zeroth::parity {
namespace {

namespace fs = std::filesystem;

constexpr double kLogits = 3e-5;

// +1 or -1 by the place, as make_families.py draws them.
float sign(std::uint64_t place) {
  std::uint64_t x = (place + 1) * 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return (x ^ (x >> 31)) >> 63 != 0 ? -1.0F : 1.0F;
}

at::Tensor sketch(const at::Tensor& value) {
  if (value.dim() == 1) {
    return value;
  }
  const at::Tensor signs = at::empty({value.size(1)}, at::kDouble);
  for (std::int64_t i = 0; i < signs.numel(); ++i) {
    signs[i] = sign(static_cast<std::uint64_t>(i));
  }
  return at::matmul(value.to(at::kDouble), signs);
}

class GoldenFamily : public testing::TestWithParam<std::string> {
 protected:
  GoldenFamily()
      : folder_(GetParam()), stored_(golden() / "families" / (GetParam() + ".safetensors")) {}

  [[nodiscard]] static const Json& about() { return about_family(GetParam()); }

  [[nodiscard]] TraineeOptions options(const fs::path& config = {}) const {
    TraineeOptions plain{.folder = folder_.path(), .config = config};
    plain.engine.max_grad_norm = 0;
    plain.engine.schedule = constant_rate(1e-3);
    return plain;
  }

  [[nodiscard]] models::TokenBatch inputs() const {
    return batch_of(value("input_ids"), value("labels"));
  }

  [[nodiscard]] at::Tensor value(const std::string& name) const { return tensor(stored_, name); }

  [[nodiscard]] double number(const std::string& name) const { return value(name).item<double>(); }

  // The names after `kind` of what is stored, with their tensors.
  [[nodiscard]] std::vector<std::pair<std::string, at::Tensor>> all_of(
      const std::string& kind) const {
    std::vector<std::pair<std::string, at::Tensor>> found;
    for (const auto& [name, view] : stored_.tensors()) {
      if (name.starts_with(kind)) {
        found.emplace_back(name.substr(kind.size()), value(name));
      }
    }
    EXPECT_GT(found.size(), 30U);
    return found;
  }

  FamilyFolder folder_;

 private:
  formats::SafetensorsFile stored_;
};

INSTANTIATE_TEST_SUITE_P(All,
                         GoldenFamily,
                         testing::ValuesIn(golden_families()),
                         [](const auto& test) { return test.param; });

at::Tensor at_places(const at::Tensor& logits) {
  return logits.index_select(1, at::tensor({5, 20, 35, 47}, at::kLong));
}

TEST_P(GoldenFamily, LogitsLossGradientsAndThreeAdamWSteps) {
  Trainee trainee = make_trainee(options());
  const models::TokenBatch batch = inputs();
  const at::Tensor rows = at_places(logits(*trainee.engine, batch.ids_BT));
  EXPECT_LE(worst_excess(rows[0], value("logits")[0], kLogits, 0), 1.0);
  EXPECT_LE(worst_excess(rows[1].narrow(0, 0, 3), value("logits")[1].narrow(0, 0, 3), kLogits, 0),
            1.0);
  const at::Tensor losses = value("step_losses");
  for (int step = 0; step < 3; ++step) {
    const engine::Loss loss = trainee.engine->forward(batch);
    EXPECT_NEAR(loss.mean(), losses[step].item<double>(), 3e-5);
    trainee.engine->backward(loss);
    if (step == 0) {
      for (const auto& [name, expected] : all_of("grad.")) {
        EXPECT_LT(relative_norm(sketch(trainee.engine->gradient_value(name)), expected), 1e-4)
            << name;
      }
    }
    EXPECT_TRUE(trainee.engine->step().updated);
  }
  EXPECT_NEAR(trainee.engine->evaluate(batch).mean(), losses[3].item<double>(), 3e-5);
  std::vector<at::Tensor> values;
  std::vector<at::Tensor> stored;
  for (const auto& [name, expected] : all_of("after3.")) {
    values.push_back(sketch(trainee.engine->parameter_value(name)).to(at::kDouble));
    stored.push_back(expected.to(at::kDouble));
    // AdamW divides by the gradient's size: where that is near zero, noise moves single elements.
    EXPECT_LT(relative_norm(values.back(), stored.back()), 5e-5) << name;
  }
  EXPECT_LT(relative_norm(at::cat(values), at::cat(stored)), 1e-5);
}

TEST_P(GoldenFamily, EveryReleasesConfigGivesTheSameBits) {
  const models::TokenBatch batch = inputs();
  const auto logits_of = [&](const char* form) {
    const fs::path config = folder_.write_config("other.json", about()["configs"][form]);
    return logits(*make_trainee(options(config)).engine, batch.ids_BT);
  };
  const at::Tensor now = logits_of("config.json");
  EXPECT_TRUE(at::equal(logits_of("config_v452.json"), now));
  EXPECT_TRUE(at::equal(logits_of("config_v5.json"), now));
}

TEST_P(GoldenFamily, OneFieldChanged) {
  const models::TokenBatch batch = inputs();
  for (const auto& [name, change] : about()["variants"].items()) {
    SCOPED_TRACE(name);
    Json config = about()["configs"]["config.json"];
    if (change.contains("use_sliding_window")) {
      config.erase("layer_types");  // a list beats the rule that the change is about
    }
    config.update(change);
    Trainee trainee = make_trainee(options(folder_.write_config("other.json", config)));
    const std::string variant = "variant." + name;
    EXPECT_LE(
        worst_excess(
            logits(*trainee.engine, batch.ids_BT)[0][47], value(variant + ".logits"), kLogits, 0),
        1.0);
    const engine::StepReport report = train_window(*trainee.engine, {batch});
    EXPECT_NEAR(report.loss.mean(), number(variant + ".loss"), 3e-5);
    EXPECT_NEAR(report.grad_norm / number(variant + ".grad_norm"), 1, 1e-4);
  }
}

TEST_P(GoldenFamily, G03_GreedyTokensWithACacheBesideALongerPrompt) {
  TraineeOptions frozen = options();
  frozen.model.trainable = false;
  Trainee trainee = make_trainee(std::move(frozen));
  const auto ids_of = [](const at::Tensor& row) {
    const auto* ids = row.data_ptr<std::int64_t>();
    return std::vector<std::int64_t>(ids, ids + row.numel());
  };
  // Beside a longer prompt, so that the first is padded on the left.
  std::vector<std::int64_t> longer = ids_of(inputs().ids_BT[0].narrow(0, 0, 29).contiguous());
  const auto answers = generate::generate(
      *trainee.engine,
      {{.row = 0, .ids = ids_of(value("prompt")[0])}, {.row = 1, .ids = std::move(longer)}},
      {.max_new_tokens = 32,
       .max_positions = 256,
       .num_layers = trainee.model.config.num_hidden_layers});
  EXPECT_EQ(answers.front().ids, ids_of(value("tokens")[0]));
}

// The Trainer counts labels before shifting, so a label at position 0 enters its count though
// nothing predicts it; the same weight is given to the engine here.
TEST(GoldenQwen3, TokenWeightedUpdatesOfTheTrainer) {
  const FamilyFolder folder("qwen3");
  Trainee trainee = make_trainee(
      {.folder = folder.path(),
       .engine = {.accumulation_steps = 2, .max_grad_norm = 0, .schedule = constant_rate(1e-3)}});
  const formats::SafetensorsFile data(golden() / "transformers/trainer/data.safetensors");
  const models::TokenBatch all = batch_of(tensor(data, "input_ids"), tensor(data, "labels"));
  for (std::int64_t first = 0; first < 20; first += 2) {
    const models::TokenBatch rows = rows_of(all, first, 2);
    engine::Loss loss = trainee.engine->forward(rows);
    loss.weight = (rows.labels_BT != -100).sum().item<std::int64_t>();
    trainee.engine->backward(loss);
    (void)trainee.engine->step();
  }
  const formats::SafetensorsFile stored(golden() / "families/qwen3.safetensors");
  int compared = 0;
  for (const auto& [name, view] : stored.tensors()) {
    if (name.starts_with("trained.")) {
      const at::Tensor value = trainee.engine->parameter_value(name.substr(8));
      EXPECT_LT(relative_norm(sketch(value), tensor(stored, name)), 1e-5) << name;
      ++compared;
    }
  }
  EXPECT_GT(compared, 30);
}

// Dynamic scaling begins beyond the positions that a model was made for, and is refused there.
TEST(GoldenLlama, DynamicRopeIsThePlainOneUpToItsPositions) {
  const FamilyFolder folder("llama_linear");
  const at::Tensor ids = at::arange(3, 51, at::kLong).unsqueeze(0);
  const auto logits_of = [&](const Json& scaling, std::int64_t positions) {
    Json config = about_family("llama_linear")["configs"]["config.json"];
    config["rope_scaling"] = scaling;
    config["max_position_embeddings"] = positions;
    Trainee trainee = make_trainee(
        {.folder = folder.path(), .config = folder.write_config("other.json", config)});
    return logits(*trainee.engine, ids);
  };
  const Json dynamic{{"rope_type", "dynamic"}, {"factor", 4.0}};
  EXPECT_TRUE(at::equal(logits_of(dynamic, 48), logits_of(Json(), 48)));
  try {
    (void)logits_of(dynamic, 47);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kNotSupported);
    EXPECT_NE(std::string(error.what()).find("48 positions is longer than the 47"),
              std::string::npos)
        << error.what();
  }
}

TEST_P(GoldenFamily, LossInHalfPrecision) {
  for (const auto dtype : {at::kBFloat16, at::kHalf}) {
    TraineeOptions narrow = options();
    narrow.model.dtype = dtype;
    Trainee trainee = make_trainee(std::move(narrow));
    EXPECT_NEAR(trainee.engine->evaluate(inputs()).mean() / number("loss"), 1, 1e-2);
  }
}

}  // namespace
}  // namespace zeroth::parity
