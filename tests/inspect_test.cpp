#include <algorithm>
#include <limits>

#include "base/file.h"
#include "base/json.h"
#include "checkpoint/folder.h"
#include "checkpoint/test_support.h"
#include "formats/adapter.h"
#include "process.h"
#include <gtest/gtest.h>

// `zeroth inspect` on everything that Zeroth writes, whole and damaged.
namespace zeroth::testing {
namespace {

namespace fs = std::filesystem;
using checkpoint::testing::Kind;
using checkpoint::testing::Tensors;
using formats::DType;

class Inspect : public ::testing::Test {
 protected:
  [[nodiscard]] fs::path path(const std::string& name) const { return folder_.path() / name; }

  [[nodiscard]] Outcome zeroth(std::vector<std::string> words) const {
    words.insert(words.begin(), {ZEROTH_PROGRAM, "inspect"});
    return run({.arguments = std::move(words),
                .input = "",
                .environment = {},
                .working_folder = folder_.path()});
  }

  [[nodiscard]] Json json(std::vector<std::string> words, int exit_code = 0) const {
    words.emplace_back("--format=json");
    const Outcome outcome = zeroth(std::move(words));
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.errors;
    return parse_json(outcome.output, "inspect", ErrorKind::kInternal);
  }

  void write_model(const std::string& folder,
                   float first,
                   DType dtype = DType::kF32,
                   std::uint64_t file_bytes = formats::kMaxFileBytes) const {
    fs::create_directories(path(folder));
    write_file_atomically(path(folder) / "config.json", R"({"hidden_size": 2})");
    Tensors tensors;
    tensors.add("embed", {2, 2}, {first, 2, 3, 4}, dtype);
    for (int layer = 0; layer < 3; ++layer) {
      tensors.add(fmt::format("layers.{}.up", layer), {2}, {1, 2}, dtype);
    }
    (void)formats::write_model_weights(path(folder), tensors.list(), file_bytes);
  }

  void write_adapter(const std::string& folder) const {
    fs::create_directories(path(folder));
    formats::write_adapter_config(path(folder), {.rank = 4, .target_modules = {"q_proj"}});
    Tensors tensors;
    tensors.add(formats::adapter_tensor_name("q_proj", 'A'), {2}, {1, 2});
    tensors.write(path(folder) / formats::kAdapterWeightsFile);
  }

  void write_checkpoint(const std::string& folder, const Kind& kind) const {
    (void)checkpoint::testing::write_checkpoint(path(folder), kind);
  }

  // One bit of the last byte.
  void damage(const std::string& file) const {
    std::string content = read_file(path(file), ErrorKind::kInternal);
    content.back() = static_cast<char>(content.back() ^ 1);
    write_file_atomically(path(file), content);
  }

 private:
  TemporaryFolder folder_;
};

void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" not in:\n" << text;
  }
}

std::string outcome_of(const Json& inspected, const std::string& file) {
  for (const Json& one : inspected["checksums"]) {
    if (one["file"] == file) {
      return one["outcome"];
    }
  }
  return "not listed";
}

TEST_F(Inspect, AModelOfOneFile) {
  write_model("model", 1);
  const Json model = json({"model"});
  EXPECT_EQ(model["kind"], "model");
  EXPECT_EQ(model["sound"], true);
  EXPECT_EQ(model["parameters"], 10);
  EXPECT_EQ(model["bytes"], 40);
  EXPECT_EQ(model["types"], (Json{{"F32", 10}}));
  EXPECT_EQ(model["tensors"].size(), 4U);
  EXPECT_EQ(model["settings"]["hidden_size"], 2);
  EXPECT_EQ(outcome_of(model, "model.safetensors"), "verified");
  EXPECT_EQ(outcome_of(model, "config.json"), "none in the file");
}

TEST_F(Inspect, RepeatedLayersStandInOneLineForPeople) {
  write_model("model", 1, DType::kBF16);
  const Outcome outcome = zeroth({"model"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  expect_parts(outcome.output,
               {"model model\n",
                "10 parameters in 4 tensors, 20 B (10 BF16)",
                "  embed [2, 2] BF16\n",
                "  layers.{0..2}.up [2] BF16 x3\n",
                "verified"});
}

TEST_F(Inspect, AModelOfPartsWithItsIndex) {
  write_model("model", 1, DType::kF32, 16);
  const Json model = json({"model"});
  EXPECT_EQ(outcome_of(model, "model-00003-of-00003.safetensors"), "verified");
  EXPECT_EQ(outcome_of(model, "model.safetensors.index.json"), "none in the file");
  EXPECT_EQ(model["tensors"].size(), 4U);
}

TEST_F(Inspect, ADamagedPartIsNamedAndTheRestShown) {
  write_model("model", 1, DType::kF32, 16);
  damage("model/model-00002-of-00003.safetensors");
  const Outcome outcome = zeroth({"model"});
  EXPECT_EQ(outcome.exit_code, 4);
  expect_parts(outcome.output, {"layers.{0..2}.up", "model-00001-of-00003.safetensors"});
  expect_parts(outcome.errors,
               {"format error: model is damaged",
                "model-00002-of-00003.safetensors: its content does not fit the checksum"});
  EXPECT_EQ(outcome_of(json({"model"}, 4), "model-00002-of-00003.safetensors"), "damaged");
}

TEST_F(Inspect, AMissingPartIsToldAndTheRestShown) {
  write_model("model", 1, DType::kF32, 16);
  fs::remove(path("model/model-00001-of-00003.safetensors"));
  const Outcome outcome = zeroth({"model"});
  EXPECT_EQ(outcome.exit_code, 4);
  expect_parts(outcome.output, {"model-00002-of-00003.safetensors"});
  expect_parts(outcome.errors, {"1 of the 3 file parts", "are missing"});
}

TEST_F(Inspect, ACutFileIsTold) {
  write_model("model", 1);
  fs::resize_file(path("model/model.safetensors"), 300);
  const Json model = json({"model"}, 4);
  EXPECT_EQ(outcome_of(model, "model.safetensors"), "damaged");
  expect_parts(model["checksums"].dump(), {"the file is truncated", "bytes are missing"});
  EXPECT_EQ(model["settings"]["hidden_size"], 2);
}

TEST_F(Inspect, AnAdapter) {
  write_adapter("adapter");
  const Json adapter = json({"adapter"});
  EXPECT_EQ(adapter["kind"], "adapter");
  EXPECT_EQ(adapter["settings"]["r"], 4);
  EXPECT_EQ(outcome_of(adapter, "adapter_model.safetensors"), "verified");
  damage("adapter/adapter_model.safetensors");
  EXPECT_EQ(json({"adapter"}, 4)["sound"], false);
  fs::remove(path("adapter/adapter_model.safetensors"));
  expect_parts(zeroth({"adapter"}).errors, {"model error", "neither adapter_model.safetensors"});
}

TEST_F(Inspect, OneFile) {
  write_adapter("adapter");
  const Json file = json({"adapter/adapter_model.safetensors"});
  EXPECT_EQ(file["kind"], "file");
  EXPECT_EQ(file["tensors"].size(), 1U);
  EXPECT_EQ(outcome_of(file, "adapter_model.safetensors"), "verified");
}

TEST_F(Inspect, ACheckpoint) {
  write_checkpoint("checkpoint-20", {.ranks = 2, .result = DType::kBF16});
  const Json found = json({"checkpoint-20"});
  EXPECT_EQ(found["kind"], "checkpoint");
  EXPECT_EQ(found["checkpoint"]["update"], 20);
  EXPECT_EQ(found["checkpoint"]["ranks"], 2);
  EXPECT_EQ(found["checkpoint"]["only_weights"], false);
  EXPECT_EQ(found["checkpoint"]["units"].size(), 3U);
  EXPECT_EQ(found["checkpoint"]["state"][0],
            (Json{{"kind", "master"}, {"tensors", 4}, {"elements", 34}}));
  EXPECT_EQ(found["settings"]["optim"], "adamw_torch");
  for (const Json& file : found["checksums"]) {
    EXPECT_EQ(file["outcome"], "verified") << file.dump();
  }
  EXPECT_EQ(found["checksums"].size(), 5U);
  expect_parts(zeroth({"checkpoint-20"}).output,
               {"after update 20, next row 8 of epoch 1; written by 2 ranks at stage 2",
                "2 moments of each",
                "the fp32 master stands in the state",
                "learning_rate = 0.001",
                "layer.up [4, 3]",
                "frozen: nothing is trained",
                "moment_1   34 elements in 4 tensors, 136 B"});
}

TEST_F(Inspect, ADamagedByteOfACheckpointIsNamedWhateverFileItIsIn) {
  write_checkpoint("checkpoint-20", {.ranks = 2});
  for (const char* file : {"adapter_model.safetensors",
                           "state-00001-of-00002.safetensors",
                           "trainer_state.json",
                           "checkpoint.json"}) {
    const std::string whole = read_file(path("checkpoint-20") / file, ErrorKind::kInternal);
    std::string content = whole;
    const std::size_t place = content.size() - 3;
    content[place] = static_cast<char>(content[place] ^ 4);
    write_file_atomically(path("checkpoint-20") / file, content);
    const Outcome outcome = zeroth({"checkpoint-20"});
    EXPECT_EQ(outcome.exit_code, 4);
    expect_parts(outcome.errors, {"checkpoint error: checkpoint-20 is damaged", file});
    expect_parts(outcome.output, {"base_model.model.layer.up [4, 3] F32"});
    write_file_atomically(path("checkpoint-20") / file, whole);
  }
}

TEST_F(Inspect, AFileThatIsMissingFromACheckpointIsNamed) {
  write_checkpoint("checkpoint-20", {.ranks = 2});
  fs::remove(path("checkpoint-20/state-00000-of-00002.safetensors"));
  write_file_atomically(path("checkpoint-20/trainer_state.json"), "{}");
  const Json found = json({"checkpoint-20"}, 4);
  EXPECT_EQ(outcome_of(found, "state-00000-of-00002.safetensors"), "missing");
  EXPECT_EQ(outcome_of(found, "trainer_state.json"), "damaged");
  expect_parts(found["checksums"].dump(), {"has 2 bytes instead of 20"});
}

TEST_F(Inspect, AnOutputFolderListsItsCheckpoints) {
  write_adapter("out");
  for (const int update : {20, 40}) {
    write_checkpoint(fmt::format("out/checkpoint-{}", update), {});
  }
  fs::create_directories(path("out/checkpoint-60"));
  write_file_atomically(path("out/latest"), "checkpoint-40\n");
  const Json out = json({"out"});
  EXPECT_EQ(out["kind"], "adapter");
  ASSERT_EQ(out["checkpoints"].size(), 3U);
  EXPECT_EQ(out["checkpoints"][1],
            (Json{{"folder", "checkpoint-40"},
                  {"update", 40},
                  {"complete", true},
                  {"fault", nullptr},
                  {"latest", true}}));
  EXPECT_EQ(out["checkpoints"][2]["complete"], false);
  fs::remove(path("out/adapter_model.safetensors"));
  fs::remove(path("out/adapter_config.json"));
  EXPECT_EQ(json({"out"})["kind"], "output");
  expect_parts(
      zeroth({"out"}).output,
      {"checkpoint-40  complete, latest", "checkpoint-60  incomplete: checkpoint.json is missing"});
}

TEST_F(Inspect, EqualModelsAreEqualWhateverTheirFiles) {
  write_model("one", 1);
  write_model("parts", 1, DType::kF32, 16);
  const Json diff = json({"one", "--diff=parts"})["diff"];
  EXPECT_EQ(diff["equal"], true) << diff.dump();
  EXPECT_EQ(diff["equal_tensors"], 4);
}

TEST_F(Inspect, PyTorchsWeightsAreReadAndNeverRun) {
  const fs::path golden = ZEROTH_SOURCE_DIR "/tests/golden/torch";
  fs::create_directories(path("model"));
  write_file_atomically(path("model/config.json"), "{}");
  fs::copy_file(golden / "state.bin", path("model/pytorch_model.bin"));
  const std::string page = zeroth({"model"}).output;
  EXPECT_NE(page.find("embed.weight [6, 4] F32"), std::string::npos) << page;
  EXPECT_NE(page.find("pytorch_model.bin  2.2 KB  none in the file"), std::string::npos) << page;
  EXPECT_EQ(page.find("index.json"), std::string::npos) << page;
  const Outcome refused = zeroth({(golden / "runs.bin").string()});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.output.find("never run"), std::string::npos);
  EXPECT_NE(refused.errors.find("asks for \"posix.system\""), std::string::npos) << refused.errors;
}

TEST_F(Inspect, WhatDiffersIsCountedAndMeasured) {
  write_model("one", 1);
  write_model("other", 1.5F);
  const Json diff = json({"one", "--diff", "other"})["diff"];
  EXPECT_EQ(diff["equal"], false);
  EXPECT_EQ(diff["equal_tensors"], 3);
  EXPECT_EQ(diff["other_values"],
            (Json::array({{{"name", "embed"},
                           {"elements", 4},
                           {"differing", 1},
                           {"without_difference", 0},
                           {"largest_difference", 0.5}}})));
  expect_parts(zeroth({"one", "--diff", "other"}).output,
               {"one and other: different", "embed: 1 of 4 elements differ, by 0.5 at the most"});
}

TEST_F(Inspect, NoNumberIsNoDifference) {
  write_model("one", 1);
  write_model("other", std::numeric_limits<float>::quiet_NaN());
  const Json diff = json({"one", "--diff", "other"})["diff"];
  EXPECT_EQ(diff["other_values"][0]["differing"], 1) << diff.dump();
  EXPECT_EQ(diff["other_values"][0]["without_difference"], 1);
  EXPECT_NE(zeroth({"one", "--diff", "other"})
                .output.find("embed: 1 of 4 elements differ, 1 where one is no number\n"),
            std::string::npos);
}

TEST_F(Inspect, ALineBreakInANameIsNoLineOfThePage) {
  Tensors tensors;
  tensors.add("a\nfault: b", {2}, {1, 2});
  tensors.write(path("odd.safetensors"));
  const std::string page = zeroth({"odd.safetensors"}).output;
  EXPECT_EQ(page.find("\nfault"), std::string::npos) << page;
  EXPECT_NE(page.find("a?fault: b"), std::string::npos) << page;
}

TEST_F(Inspect, TensorsOfOneAloneAndOfOtherTypesAreNamed) {
  write_model("one", 1);
  write_model("rounded", 1, DType::kBF16);
  write_adapter("adapter");
  const Json rounded = json({"one", "--diff=rounded"})["diff"];
  EXPECT_EQ(rounded["other_form"][0],
            (Json{{"name", "embed"}, {"here", "F32 [2, 2]"}, {"other", "BF16 [2, 2]"}}));
  EXPECT_TRUE(rounded["other_values"].empty());  // the same numbers
  const Json apart = json({"one", "--diff=adapter"})["diff"];
  EXPECT_EQ(apart["only_here"].size(), 4U);
  EXPECT_EQ(apart["only_in_other"].size(), 1U);
  EXPECT_EQ(apart["settings"].front()["key"], "alpha_pattern");
}

TEST_F(Inspect, CheckpointsAreComparedWhoeverWroteThem) {
  write_checkpoint("a", {.ranks = 1});
  write_checkpoint("b", {.ranks = 3});
  const Json diff = json({"a", "--diff=b"})["diff"];
  EXPECT_EQ(diff["equal"], true) << diff.dump();
  EXPECT_EQ(diff["equal_tensors"], 3 + 4);  // weights, and two moments of the units that train
}

// What a run was told is nothing that the adapter says of itself.
TEST_F(Inspect, AResultIsComparedWithItsCheckpointByWhatBothSay) {
  write_checkpoint("checkpoint-20", {});
  fs::create_directories(path("out"));
  fs::copy(path("checkpoint-20/adapter_model.safetensors"), path("out"));
  const Json diff = json({"checkpoint-20", "--diff=out"})["diff"];
  EXPECT_EQ(diff["equal"], true) << diff.dump();
  EXPECT_EQ(diff["equal_tensors"], 3);
}

TEST_F(Inspect, OtherSettingsOfEqualWeightsAreShown) {
  write_model("one", 1);
  write_model("other", 1);
  write_file_atomically(path("other/config.json"), R"({"hidden_size": 3})");
  const Json diff = json({"one", "--diff=other"})["diff"];
  EXPECT_EQ(diff["equal_values"], true);
  EXPECT_EQ(diff["equal"], false);
  EXPECT_EQ(diff["settings"],
            Json::array({{{"key", "hidden_size"}, {"value", 2}, {"other_value", 3}}}));
  expect_parts(zeroth({"one", "--diff=other"}).output,
               {"one and other: equal but for settings", "hidden_size: 2 and 3"});
}

TEST_F(Inspect, AnotherStateIsFound) {
  write_checkpoint("a", {.ranks = 1});
  write_checkpoint("b", {.ranks = 2});
  damage("b/state-00001-of-00002.safetensors");
  const Json diff = json({"a", "--diff=b"}, 4)["diff"];
  EXPECT_EQ(diff["other_values"].size(), 0U);
  ASSERT_EQ(diff["not_compared"].size(), 1U) << diff.dump();
  const auto fault = diff["not_compared"][0].get<std::string>();
  EXPECT_NE(fault.find("layer/moment_1 cannot be compared"), std::string::npos) << fault;
  EXPECT_NE(fault.find("state-00001-of-00002.safetensors is damaged"), std::string::npos) << fault;
}

TEST_F(Inspect, WeightsAloneLackTheState) {
  write_checkpoint("a", {});
  write_checkpoint("b", {.only_weights = true});
  const Json diff = json({"a", "--diff=b"})["diff"];
  EXPECT_EQ(diff["only_here"], Json::array({"state moment_0", "state moment_1"}));
  expect_parts(zeroth({"b"}).output, {"weights alone"});
}

}  // namespace
}  // namespace zeroth::testing
