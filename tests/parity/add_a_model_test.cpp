#include <array>
#include <regex>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "models/decoder_units.h"
#include "parity/runs.h"
#include "parity/support.h"
#include "shapes/decoder_shape.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>

// docs/add-a-model.md, followed: a family of its own reader, shape and units. The page's code
// stands here word for word.
namespace zeroth::parity {
namespace {

namespace fs = std::filesystem;
using models::Attention;
using models::EmbeddingUnit;
using models::ForwardContext;
using models::HeadUnit;
using models::Mlp;
using models::Norm;
using models::Parameter;
using models::Surroundings;
using models::Unit;
using models::UnitList;
using models::UnitParts;

// clang-format off
void read_twin(formats::JsonFields& fields, formats::ModelConfig& config) {
  read_decoder(fields, {.max_position_embeddings = 4096, .tie_word_embeddings = true}, config);
  config.qk_norm = fields.flag_or("use_qk_norm", true);
  config.activation = read_activation(fields, "hidden_act", formats::Activation::kGelu);
  const formats::RopeConfig rope =
      read_rope(fields, {.max_position_embeddings = config.max_position_embeddings});
  read_layer_kinds(fields, {.full_rope = rope}, config);
}

shapes::ModelShape twin_shape(const formats::ModelConfig& config) {
  shapes::ModelShape model;
  model.units.push_back(shapes::embedding_shape(config));
  for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    const std::string number = std::to_string(layer);
    shapes::UnitShape& block = model.units.emplace_back();
    block.name = "layers." + number;
    shapes::add_norm(block, "model.layers." + number + ".norm", config.hidden_size, config);
    shapes::add_attention(block, "model.layers." + number + ".self_attn", config);
    shapes::add_mlp(block, "model.layers." + number + ".mlp", config);
  }
  model.units.push_back(shapes::head_shape(config));
  return model;
}

shapes::Family twin() {
  return {"twin", "TwinForCausalLM", read_twin, twin_shape};
}

class TwinBlock : public Unit {
 public:
  TwinBlock(std::vector<Parameter> parameters, const Surroundings& model, std::int64_t layer)
      : Unit("layers." + std::to_string(layer), std::move(parameters)),
        norm_({parameters_, model}, prefix(layer) + "norm"),
        attention_({parameters_, model, layer}, prefix(layer) + "self_attn"),
        mlp_({parameters_, model, layer}, prefix(layer) + "mlp") {}

  at::Tensor forward(const ForwardContext& context, const at::Tensor& hidden_BTC) override {
    const at::Tensor normed_BTC = norm_(hidden_BTC);
    return hidden_BTC + attention_(context, normed_BTC) + mlp_(context, normed_BTC);
  }

 private:
  static std::string prefix(std::int64_t layer) {
    return "model.layers." + std::to_string(layer) + ".";
  }

  Norm norm_;
  Attention attention_;
  Mlp mlp_;
};

UnitList twin_units(UnitParts parts) {
  const Surroundings model = surroundings_of(parts);
  UnitList units;
  units.push_back(std::make_unique<EmbeddingUnit>(std::move(parts.parameters.front()), model));
  for (std::int64_t layer = 0; layer < parts.config.num_hidden_layers; ++layer) {
    units.push_back(
        std::make_unique<TwinBlock>(std::move(parts.parameters[units.size()]), model, layer));
  }
  units.push_back(
      std::make_unique<HeadUnit>(std::move(parts.parameters.back()), model, tied_weight(parts, units)));
  return units;
}

// clang-format on

std::span<const shapes::Family> twin_shapes() {
  static const std::array kFamilies{twin()};
  return kFamilies;
}

std::span<const models::Family> twin_table() {
  using models::Family;
  // clang-format off
  static const std::array kFamilies{
      Family{"twin", twin_units},
  };
  // clang-format on
  return kFamilies;
}

formats::ModelConfig twin_config(const std::string& more = "") {
  const fs::path path = fs::path(testing::TempDir()) / "zeroth_twin_config.json";
  write_file_atomically(path,
                        R"({"model_type": "twin", "architectures": ["TwinForCausalLM"],
      "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
      "num_key_value_heads": 2, "vocab_size": 512, "initializer_range": 0.2)" +
                            more + "}");
  return shapes::read_model_config(path, twin_shapes());
}

models::Model twin_model(const formats::ModelConfig& config, bool lora) {
  models::ModelOptions options{.families = {.shapes = twin_shapes(), .units = twin_table()}};
  if (lora) {
    options.lora = shapes::LoraSettings{.rank = 4, .alpha = 8};
  }
  return models::random_model(config, options);
}

// Three updates; all that was trained, end to end.
at::Tensor trained(int ranks, int stage, bool lora) {
  at::Tensor weights;
  const formats::ModelConfig config = twin_config();
  on_threads(ranks, [&](const std::shared_ptr<comm::Communicator>& comm) {
    engine::EngineOptions options{.zero_stage = stage, .schedule = constant_rate(1e-2)};
    Trainee trainee{.model = twin_model(config, lora)};
    trainee.engine =
        std::make_unique<engine::Engine>(trainee.model.units, optim::make_adamw({}), options, comm);
    const std::int64_t share = 4 / ranks;
    for (int update = 0; update < 3; ++update) {
      (void)train_window(*trainee.engine, {rows_of(all_rows(4), comm->rank() * share, share)});
    }
    const at::Tensor values = trained_values(trainee);
    if (comm->rank() == 0) {
      weights = values;
    }
  });
  return weights;
}

TEST(AddAModel, ThePageAndThisTestHaveTheSameCode) {
  const fs::path root = ZEROTH_SOURCE_DIR;
  const std::string page = read_file(root / "docs/add-a-model.md", ErrorKind::kDisk);
  const std::string here = read_file(__FILE__, ErrorKind::kDisk);
  const std::string fence = "```cpp\n";
  int blocks = 0;
  for (std::size_t at = page.find(fence); at != std::string::npos; at = page.find(fence, at)) {
    at += fence.size();
    const std::string code = page.substr(at, page.find("```", at) - at);
    EXPECT_NE(here.find(code), std::string::npos) << code;
    ++blocks;
  }
  EXPECT_EQ(blocks, 6);
}

// What the page names is there: files, and words of code outside the blocks.
TEST(AddAModel, ThePageNamesFilesThatExist) {
  const fs::path root = ZEROTH_SOURCE_DIR;
  const std::string page = read_file(root / "docs/add-a-model.md", ErrorKind::kDisk);
  const std::regex path("`((?:src|tests|docs)/[A-Za-z0-9_./-]+)`");
  int named = 0;
  for (std::sregex_iterator it(page.begin(), page.end(), path), end; it != end; ++it) {
    const std::string name = (*it)[1];
    if (name != "src/shapes/families/twin.cpp") {
      EXPECT_TRUE(fs::exists(root / name)) << name;
      ++named;
    }
  }
  EXPECT_GE(named, 8);
}

TEST(AddAModel, ItsFieldsAreReadAndOthersRefused) {
  EXPECT_TRUE(twin_config().qk_norm);
  EXPECT_FALSE(twin_config(R"(, "use_qk_norm": false)").qk_norm);
  EXPECT_THROW((void)twin_config(R"(, "use_qk_nrm": true)"), Error);
}

TEST(AddAModel, EveryStageAndTwoRanksGiveTheSame) {
  for (const bool lora : {false, true}) {
    const at::Tensor alone = trained(1, 0, lora);
    EXPECT_GT(alone.numel(), 1000);
    for (const int stage : {1, 3}) {
      EXPECT_LT(relative_norm(trained(2, stage, lora), alone), 1e-5);
    }
  }
}

}  // namespace
}  // namespace zeroth::parity
