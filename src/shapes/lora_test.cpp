#include "shapes/lora.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "formats/test_files.h"
#include "shapes/families.h"
#include "shapes/freeze.h"
#include <gtest/gtest.h>

namespace zeroth::shapes {
namespace {

using formats::AdapterBias;
using testing::expect_error;

using Names = std::vector<std::string>;

formats::ModelConfig small_config(bool tied = false) {
  formats::ModelConfig config;
  config.model_type = "llama";
  config.hidden_size = 64;
  config.intermediate_size = 172;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 8;
  config.num_key_value_heads = 4;
  config.head_dim = 16;
  config.vocab_size = 512;
  config.qkv_bias = config.output_bias = true;
  config.tie_word_embeddings = tied;
  return config;
}

Names modules_of(const LoraTargets& targets) {
  Names names;
  for (const auto& modules : targets.by_unit) {
    for (const AdaptedModule& module : modules) {
      names.push_back(module.module);
    }
  }
  return names;
}

Names keys_of(const LoraTargets& targets) {
  Names keys;
  for (const SavedTensor& saved : targets.saved) {
    keys.push_back(saved.key.substr(std::string(formats::kAdapterPrefix).size()));
  }
  return keys;
}

bool holds(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Names adapted(const LoraSettings& settings) {
  return modules_of(lora_targets(model_shape(small_config()), settings));
}

TEST(LoraTargets, AllMeansEveryLinearOfTheBlocks) {
  const ModelShape model = model_shape(small_config());
  const LoraTargets targets = lora_targets(model, {.target_modules = {"all"}});
  EXPECT_EQ(targets.target_modules,
            (std::vector<std::string>{
                "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}));
  ASSERT_EQ(targets.by_unit.size(), model.units.size());
  EXPECT_TRUE(targets.by_unit.front().empty());
  EXPECT_EQ(targets.by_unit[1].size(), 7U);
  EXPECT_TRUE(targets.by_unit.back().empty());
  EXPECT_EQ(targets.counts.front(), (std::pair<std::string, std::int64_t>{"q_proj", 2}));
  EXPECT_EQ(lora_targets(model, {.target_modules = {"all-linear"}}).target_modules,
            targets.target_modules);
}

TEST(LoraTargets, NamesMatchAsPeftMatchesThem) {
  const ModelShape model = model_shape(small_config());
  const LoraTargets targets =
      lora_targets(model, {.target_modules = {"v_proj", "layers.1.self_attn.q_proj", "v_proj"}});
  EXPECT_EQ(targets.target_modules,
            (std::vector<std::string>{"v_proj", "layers.1.self_attn.q_proj"}));
  ASSERT_EQ(targets.by_unit[1].size(), 1U);
  EXPECT_EQ(targets.by_unit[1][0].module, "model.layers.0.self_attn.v_proj");
  ASSERT_EQ(targets.by_unit[2].size(), 2U);
  EXPECT_EQ(targets.by_unit[2][0].module, "model.layers.1.self_attn.q_proj");  // the unit's order
  EXPECT_EQ(targets.counts[1].second, 1);
  EXPECT_EQ(
      lora_targets(model, {.target_modules = {"model.layers.0.mlp.up_proj"}}).by_unit[1].size(),
      1U);
}

TEST(N46, ANameThatMatchesNothingIsAnErrorThatListsWhatThereIs) {
  const ModelShape model = model_shape(small_config());
  const auto fails = [&](const std::vector<std::string>& targets,
                         const std::vector<std::string>& parts) {
    expect_error(
        [&] { (void)lora_targets(model, {.target_modules = targets}); }, ErrorKind::kConfig, parts);
  };
  fails({"q_proj", "v_prj"}, {"\"v_prj\" (did you mean \"v_proj\"?)", "q_proj (2 modules)"});
  fails({"query_key_value"}, {"\"query_key_value\"", "down_proj (2 modules)"});
  fails({"proj"}, {"\"proj\""});            // the end of a name, but not from a dot on
  fails({"self_attn"}, {"\"self_attn\""});  // a module, but no linear
  fails({""}, {"\"\""});
  fails({}, {"no LoRA targets"});
  fails({"all", "q_proj"}, {"must stand alone"});
}

TEST(LoraParameters, AreAThenB) {
  const auto parameters =
      lora_parameters({{.module = "m.q_proj", .in_features = 6, .out_features = 4}, 2});
  ASSERT_EQ(parameters.size(), 2U);
  EXPECT_EQ(parameters[0].name, "m.q_proj.lora_A.weight");
  EXPECT_EQ(parameters[0].shape, (std::vector<std::int64_t>{2, 6}));
  EXPECT_EQ(parameters[1].name, "m.q_proj.lora_B.weight");
  EXPECT_EQ(parameters[1].shape, (std::vector<std::int64_t>{4, 2}));
  EXPECT_TRUE(parameters[0].decays && parameters[1].decays);
}

TEST(LoraTargets, APatternMatchesWholeNames) {
  EXPECT_EQ(
      adapted({.target_modules = {}, .target_pattern = R"(.*\.[1-9]\.self_attn\.(q|o)_proj)"}),
      (Names{"model.layers.1.self_attn.q_proj", "model.layers.1.self_attn.o_proj"}));
  expect_error(
      [] { (void)adapted({.target_modules = {}, .target_pattern = "q_pro."}); },
      ErrorKind::kConfig,
      {"\"q_pro.\"", "no whole name", "q_proj (2 modules)", "model.layers.0.self_attn.q_proj"});
  expect_error([] { (void)adapted({.target_modules = {}, .target_pattern = "q_proj("}); },
               ErrorKind::kConfig,
               {"no regular expression"});
  expect_error(
      [] {
        (void)adapted(
            {.target_modules = {}, .target_pattern = ".*q_proj", .layers_to_transform = {0}});
      },
      ErrorKind::kConfig,
      {"layers_to_transform", ".*q_proj"});
}

TEST(LoraTargets, ExcludedModulesComeFirstAndLayersLast) {
  EXPECT_EQ(adapted({.target_modules = {"q_proj", "v_proj"},
                     .exclude_modules = {"layers.0.self_attn.q_proj"}}),
            (Names{"model.layers.0.self_attn.v_proj",
                   "model.layers.1.self_attn.q_proj",
                   "model.layers.1.self_attn.v_proj"}));
  EXPECT_EQ(
      adapted({.target_modules = {"q_proj", "v_proj"}, .exclude_pattern = R"(.*\.0\..*|.*v_proj)"}),
      (Names{"model.layers.1.self_attn.q_proj"}));
  EXPECT_EQ(adapted({.target_modules = {"q_proj"}, .layers_to_transform = {1}}),
            (Names{"model.layers.1.self_attn.q_proj"}));
  EXPECT_EQ(adapted({.target_modules = {"q_proj", "model.layers.0.mlp.up_proj"},
                     .layers_to_transform = {1},
                     .layers_pattern = {"layers"}}),
            (Names{"model.layers.0.mlp.up_proj", "model.layers.1.self_attn.q_proj"}));
  expect_error([] { (void)adapted({.target_modules = {"q_proj"}, .layers_to_transform = {7}}); },
               ErrorKind::kConfig,
               {"leave none"});
}

TEST(LoraTargets, RanksAndScalesAreEachModulesOwn) {
  const LoraTargets targets =
      lora_targets(model_shape(small_config()),
                   {.rank = 8,
                    .alpha = 16,
                    .target_modules = {"q_proj", "v_proj"},
                    .rank_pattern = {{R"(layers\.1\.self_attn\.q_proj)", 2}},
                    .alpha_pattern = {{"v_proj", 32}, {"q_proj", 4}},
                    .use_rslora = true});
  EXPECT_EQ(targets.find("model.layers.0.self_attn.q_proj")->rank, 8);
  EXPECT_EQ(targets.find("model.layers.1.self_attn.q_proj")->rank, 2);
  EXPECT_DOUBLE_EQ(targets.find("model.layers.1.self_attn.q_proj")->scale, 4 / std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(targets.find("model.layers.0.self_attn.v_proj")->scale, 32 / std::sqrt(8.0));
  EXPECT_EQ(targets.find("model.layers.0.self_attn.k_proj"), nullptr);
}

TEST(LoraTargets, TheEndsOfTheModelAreAdaptedWhereTheyAreNamed) {
  const LoraTargets targets =
      lora_targets(model_shape(small_config()), {.target_modules = {"embed_tokens", "lm_head"}});
  EXPECT_EQ(modules_of(targets), (Names{"model.embed_tokens", "lm_head"}));
  EXPECT_EQ(keys_of(targets),
            (Names{"model.embed_tokens.lora_embedding_A",
                   "model.embed_tokens.lora_embedding_B",
                   "model.embed_tokens.base_layer.weight",
                   "lm_head.lora_A.weight",
                   "lm_head.lora_B.weight",
                   "lm_head.base_layer.weight"}));
  EXPECT_TRUE(targets.trained.empty());
  expect_error([] { (void)adapted({.target_modules = {"embed_tokens"}, .use_dora = true}); },
               ErrorKind::kNotSupported,
               {"DoRA", "model.embed_tokens"});
}

TEST(LoraTargets, ModulesToSaveTrainInFullAndGetNoAdapter) {
  const LoraTargets targets = lora_targets(
      model_shape(small_config()),
      {.target_modules = {"q_proj", "up_proj"}, .modules_to_save = {"lm_head", "layers.0.mlp"}});
  EXPECT_EQ(targets.find("model.layers.0.mlp.up_proj"), nullptr);
  EXPECT_EQ(targets.trained,
            (std::set<std::string>{"lm_head.weight",
                                   "model.layers.0.mlp.down_proj.weight",
                                   "model.layers.0.mlp.gate_proj.weight",
                                   "model.layers.0.mlp.up_proj.weight"}));
  EXPECT_TRUE(holds(keys_of(targets), "model.layers.0.mlp.up_proj.weight"));
  EXPECT_TRUE(holds(keys_of(targets), "lm_head.weight"));
}

TEST(LoraTargets, OnlyTheNamedSideOfATiedMatrixIsTrained) {
  for (const std::string name : {"embed_tokens", "lm_head"}) {
    const ModelShape tied = model_shape(small_config(true));
    const LoraTargets targets =
        lora_targets(tied, {.target_modules = {"q_proj"}, .modules_to_save = {name}});
    EXPECT_TRUE(targets.own_head);
    EXPECT_EQ(targets.trained.size(), 1U);
    EXPECT_TRUE(targets.trained.begin()->find(name) != std::string::npos);
    const ModelShape own = with_own_head(tied);
    EXPECT_TRUE(own.units.back().borrowed.empty());
    EXPECT_EQ(own.units.back().parameters.back().name, "lm_head.weight");
  }
}

TEST(LoraTargets, BiasesTrainAllOrThoseOfAdaptedModules) {
  const auto keys = [](AdapterBias bias) {
    return keys_of(
        lora_targets(model_shape(small_config()), {.target_modules = {"q_proj"}, .bias = bias}));
  };
  const Names all = keys(AdapterBias::kAll);
  EXPECT_EQ(all.size(), 2U * (2 + 4));  // this model's q, k, v and o have a bias
  EXPECT_TRUE(holds(all, "model.layers.0.self_attn.q_proj.base_layer.bias"));
  EXPECT_TRUE(holds(all, "model.layers.0.self_attn.k_proj.bias"));
  const Names some = keys(AdapterBias::kAdapted);
  EXPECT_EQ(some.size(), 2U * (2 + 1));
  EXPECT_TRUE(holds(some, "model.layers.1.self_attn.q_proj.base_layer.bias"));
  EXPECT_EQ(keys(AdapterBias::kNone).size(), 4U);
}

TEST(LoraTargets, SettingsThatDoNothingAreListed) {
  const LoraTargets targets = lora_targets(model_shape(small_config()),
                                           {.target_modules = {"q_proj"},
                                            .exclude_modules = {"w_proj"},
                                            .layers_to_transform = {0, 9},
                                            .rank_pattern = {{"k_proj", 2}},
                                            .alpha_pattern = {{"q_proj", 2}},
                                            .modules_to_save = {"score"}});
  const std::string all = join(targets.idle, "; ");
  for (const char* part : {"rank_pattern \"k_proj\"",
                           "layers_to_transform 9",
                           "modules_to_save \"score\"",
                           "exclude_modules \"w_proj\""}) {
    EXPECT_NE(all.find(part), std::string::npos) << part << " in " << all;
  }
  EXPECT_EQ(targets.idle.size(), 4U);
}

TEST(LoraParameters, AMagnitudeForEachOutput) {
  const auto parameters =
      lora_parameters({{.module = "m.q_proj", .in_features = 6, .out_features = 4}, 2, 1.0, true});
  ASSERT_EQ(parameters.size(), 3U);
  EXPECT_EQ(parameters[2].name, "m.q_proj.lora_magnitude_vector");
  EXPECT_EQ(parameters[2].shape, (std::vector<std::int64_t>{4}));
}

TEST(Freeze, TrainsTheLastBlocksOrTheFirst) {
  const ModelShape model = model_shape(small_config());
  const auto names = [&](const FreezeSettings& settings) {
    return freeze_trained(model, settings);
  };
  for (const std::string& name : names({.layers = 1})) {
    EXPECT_TRUE(name.starts_with("model.layers.1.")) << name;
  }
  for (const std::string& name : names({.layers = -1})) {
    EXPECT_TRUE(name.starts_with("model.layers.0.")) << name;
  }
  EXPECT_EQ(names({.layers = 9}).size(), 2U * names({.layers = 1}).size());
  EXPECT_EQ(names({.layers = 1, .modules = {"mlp"}}).size(), 3U);
  EXPECT_EQ(names({.layers = 0, .extra = {"embed_tokens"}}),
            (std::set<std::string>{"model.embed_tokens.weight"}));
  EXPECT_EQ(names({.layers = 0, .extra = {"norm"}}).size(), 5U);  // as LLaMA-Factory has it
}

TEST(Freeze, NamesThatTheModelLacksAreToldWithThoseItHas) {
  const ModelShape model = model_shape(small_config(true));
  expect_error([&] { (void)freeze_trained(model, {.modules = {"attention"}}); },
               ErrorKind::kConfig,
               {"freeze_trainable_modules attention", "self_attn", "mlp"});
  expect_error([&] { (void)freeze_trained(model, {.extra = {"lm_head"}}); },
               ErrorKind::kConfig,
               {"freeze_extra_modules lm_head", "embed_tokens", "norm"});
  expect_error(
      [&] { (void)freeze_trained(model, {.layers = 0}); }, ErrorKind::kConfig, {"trains nothing"});
}

}  // namespace
}  // namespace zeroth::shapes
