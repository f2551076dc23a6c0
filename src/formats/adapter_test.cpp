#include "formats/adapter.h"

#include "base/json.h"
#include "formats/test_files.h"
#include <gtest/gtest.h>

namespace zeroth::formats {
namespace {

using testing::expect_error;
using testing::TemporaryFolder;

AdapterConfig read_text(const std::string& text) {
  const TemporaryFolder folder;
  (void)folder.write("adapter_config.json", text);
  return read_adapter_config(folder.path());
}

// The smallest adapter_config.json, with `more` added.
std::string with(const std::string& more) {
  Json json =
      parse_json(R"({"peft_type":"LORA","target_modules":["q_proj"]})", "", ErrorKind::kModel);
  json.update(parse_json("{" + more + "}", "more", ErrorKind::kModel));
  return json.dump();
}

void expect_refused(const std::string& more, ErrorKind kind, const std::string& part) {
  expect_error([&] { (void)read_text(with(more)); }, kind, {"adapter_config.json", part});
}

TEST(Adapter, TheSmallestConfigHasPeftsDefaults) {
  const AdapterConfig config = read_text(with(""));
  EXPECT_EQ(config.rank, 8);
  EXPECT_EQ(config.alpha, 8);
  EXPECT_EQ(config.dropout, 0);
  EXPECT_EQ(config.target_modules, (std::vector<std::string>{"q_proj"}));
}

TEST(Adapter, WritesTheFieldsThatOldPeftAcceptsAndReadsThemBack) {
  const TemporaryFolder folder;
  write_adapter_config(folder.path(),
                       {.base_model_name_or_path = "base",
                        .rank = 16,
                        .alpha = 32,
                        .dropout = 0.05,
                        .target_modules = {"q_proj", "v_proj"}});
  EXPECT_EQ(read_file(folder.path() / "adapter_config.json", ErrorKind::kModel), R"({
  "alpha_pattern": {},
  "auto_mapping": null,
  "base_model_name_or_path": "base",
  "bias": "none",
  "fan_in_fan_out": false,
  "inference_mode": true,
  "init_lora_weights": true,
  "layers_pattern": null,
  "layers_to_transform": null,
  "lora_alpha": 32,
  "lora_dropout": 0.05,
  "modules_to_save": null,
  "peft_type": "LORA",
  "r": 16,
  "rank_pattern": {},
  "revision": null,
  "target_modules": [
    "q_proj",
    "v_proj"
  ],
  "task_type": "CAUSAL_LM",
  "use_dora": false,
  "use_rslora": false
}
)");
  const AdapterConfig config = read_adapter_config(folder.path());
  EXPECT_EQ(config.base_model_name_or_path, "base");
  EXPECT_EQ(config.rank, 16);
  EXPECT_EQ(config.alpha, 32);
  EXPECT_EQ(config.dropout, 0.05);
  EXPECT_EQ(config.target_modules, (std::vector<std::string>{"q_proj", "v_proj"}));
}

TEST(Adapter, KeepsAlphaThatIsNoWholeNumberAndAllLinear) {
  const TemporaryFolder folder;
  write_adapter_config(
      folder.path(), {.base_model_name_or_path = "", .alpha = 2.5, .target_modules = {kAllLinear}});
  const Json json = parse_json(
      read_file(folder.path() / "adapter_config.json", ErrorKind::kModel), "", ErrorKind::kModel);
  EXPECT_EQ(json["target_modules"], "all-linear");
  EXPECT_TRUE(json["base_model_name_or_path"].is_null());
  EXPECT_EQ(read_adapter_config(folder.path()).alpha, 2.5);
  EXPECT_EQ(read_adapter_config(folder.path()).target_modules,
            (std::vector<std::string>{kAllLinear}));
}

AdapterConfig with_everything() {
  return {.base_model_name_or_path = "base",
          .rank = 3,
          .alpha = 6,
          .target_modules = {},
          .target_pattern = ".*q_proj",
          .exclude_modules = {"layers.0"},
          .layers_to_transform = {0, 2},
          .layers_pattern = {"layers"},
          .rank_pattern = {{"b", 4}, {"a", 2}},
          .alpha_pattern = {{"q_proj", 2.5}},
          .use_rslora = true,
          .use_dora = true,
          .modules_to_save = {"lm_head"},
          .bias = AdapterBias::kAdapted,
          .start = kGaussianStart};
}

TEST(Adapter, EverySettingIsWrittenAsPeftHasItAndReadBack) {
  const TemporaryFolder folder;
  write_adapter_config(folder.path(), with_everything());
  const std::string text = read_file(folder.path() / "adapter_config.json", ErrorKind::kModel);
  const Json json = parse_json(text, "", ErrorKind::kModel);
  EXPECT_EQ(json["target_modules"], ".*q_proj");
  EXPECT_EQ(json["bias"], "lora_only");
  EXPECT_EQ(json["init_lora_weights"], "gaussian");
  EXPECT_EQ(json["exclude_modules"], Json::array({"layers.0"}));
  EXPECT_EQ(json["rank_pattern"].dump(), R"({"b":4,"a":2})");
  EXPECT_EQ(json["alpha_pattern"].dump(), R"({"q_proj":2.5})");
  write_adapter_config(folder.path(), read_adapter_config(folder.path()));
  EXPECT_EQ(read_file(folder.path() / "adapter_config.json", ErrorKind::kModel), text);
}

TEST(Adapter, FaultyPatternsAndLayersAreTold) {
  expect_refused(R"("rank_pattern":{"q_proj":0})", ErrorKind::kModel, "rank_pattern");
  expect_refused(R"("rank_pattern":["q_proj"])", ErrorKind::kModel, "rank_pattern");
  expect_refused(R"("alpha_pattern":{"q_proj":"2"})", ErrorKind::kModel, "alpha_pattern");
  expect_refused(R"("layers_to_transform":[-1])", ErrorKind::kModel, "layers_to_transform");
  expect_refused(R"("bias":"some")", ErrorKind::kModel, "bias");
  expect_refused(R"("modules_to_save":[1])", ErrorKind::kModel, "modules_to_save");
}

TEST(Adapter, WhatChangesTheResultIsRefusedByNameAndValue) {
  for (const char* more : {R"("lora_bias":true)",
                           R"("fan_in_fan_out":true)",
                           R"("megatron_config":{"a":1})",
                           R"("trainable_token_indices":[1])",
                           R"("layer_replication":[[0,4]])",
                           R"("use_qalora":true)",
                           R"("target_parameters":["w"])",
                           R"("init_lora_weights":"pissa")",
                           R"("task_type":"SEQ_CLS")",
                           R"("peft_type":"LOHA")"}) {
    const std::string text = more;
    expect_refused(text, ErrorKind::kNotSupported, text.substr(1, text.find('"', 1) - 1) + " = ");
  }
}

TEST(Adapter, AnUnknownKeyIsHarmlessOnlyWhenItIsOff) {
  EXPECT_NO_THROW(
      read_text(with(R"("new_a":null,"new_b":false,"new_c":{},"new_d":[],"new_e":"")")));
  expect_refused(
      R"("new_feature":true)", ErrorKind::kNotSupported, "new_feature = true: unknown key");
  expect_refused(R"("new_size":0)", ErrorKind::kNotSupported, "new_size = 0");
}

TEST(Adapter, FaultsAreToldTogether) {
  expect_error([] { (void)read_text(R"({"r":0,"lora_dropout":1.0,"target_modules":[]})"); },
               ErrorKind::kModel,
               {"peft_type is missing", "r = 0", "lora_dropout = 1.0", "target_modules = []"});
  expect_refused(R"("lora_alpha":"16")", ErrorKind::kModel, "lora_alpha");
  expect_refused(R"("target_modules":null)", ErrorKind::kModel, "target_modules");
  expect_error([] { (void)read_adapter_config("/nowhere"); },
               ErrorKind::kModel,
               {"/nowhere/adapter_config.json"});
}

TEST(Adapter, NamesTensorsAsPeftDoes) {
  EXPECT_EQ(base_layer_name("model.layers.0.self_attn.q_proj.bias"),
            "model.layers.0.self_attn.q_proj.base_layer.bias");
  EXPECT_EQ(adapter_tensor_name("model.layers.0.self_attn.q_proj", 'A'),
            "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight");
}

TEST(Adapter, ReadsWhatPeftWrote) {
  if (!testing::has_shared_data()) {
    GTEST_SKIP() << "needs ../shared/data";
  }
  const auto reference = testing::shared_data() / "reference";
  EXPECT_EQ(read_adapter_config(reference / "stories260K/lora_init").rank, 4);
  const auto cases = reference / "transformers/peft/llama3";
  const AdapterConfig plain = read_adapter_config(cases / "plain");
  EXPECT_EQ(plain.rank, 8);
  EXPECT_EQ(plain.alpha, 16);
  EXPECT_EQ(plain.target_modules.size(), 7U);
  EXPECT_EQ(read_adapter_config(cases / "all_linear").rank, 2);
  EXPECT_TRUE(read_adapter_config(cases / "dora").use_dora);
  EXPECT_TRUE(read_adapter_config(cases / "rslora").use_rslora);
  EXPECT_EQ(read_adapter_config(cases / "pattern").rank_pattern.back(),
            (std::pair<std::string, std::int64_t>{"q_proj", 4}));
  EXPECT_TRUE(read_adapter_config(cases / "regex").target_modules.empty());
  EXPECT_FALSE(read_adapter_config(cases / "regex").target_pattern.empty());
  EXPECT_EQ(read_adapter_config(cases / "layers_to_transform").layers_to_transform,
            (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(read_adapter_config(cases / "modules_to_save_lm_head").modules_to_save,
            (std::vector<std::string>{"lm_head"}));
}

}  // namespace
}  // namespace zeroth::formats
