#include "formats/weights_writer.h"

#include <algorithm>

#include "base/json.h"
#include "formats/test_files.h"
#include <gtest/gtest.h>

namespace zeroth::formats {
namespace {

using testing::TemporaryFolder;
using testing::ZeroTensors;

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST(WeightsWriter, ASmallModelIsOneFile) {
  const TemporaryFolder folder;
  ZeroTensors zeros;
  const auto files = write_model_weights(folder.path(), {zeros.make("a", {4})});
  EXPECT_EQ(files, (std::vector{folder.path() / "model.safetensors"}));
  const SafetensorsFile file(files.front());
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_EQ(file.metadata().at(kChecksumKey), content_checksum(file));
}

TEST(WeightsWriter, ALargeModelIsFilePartsWithAnIndex) {
  const TemporaryFolder folder;
  ZeroTensors zeros;
  const auto files = write_model_weights(folder.path(),
                                         {zeros.make("z", {2}),
                                          zeros.make("a", {2}),
                                          zeros.make("large", {100}),
                                          zeros.make("b", {1})},
                                         16);
  EXPECT_EQ(names_in(folder.path()),
            (std::vector<std::string>{"model-00001-of-00003.safetensors",
                                      "model-00002-of-00003.safetensors",
                                      "model-00003-of-00003.safetensors",
                                      "model.safetensors.index.json"}));
  EXPECT_EQ(files.size(), 4U);
  const Json index = parse_json(read_file(files.back(), ErrorKind::kModel), "", ErrorKind::kModel);
  EXPECT_EQ(index["metadata"]["total_size"], 420);
  EXPECT_EQ(index["weight_map"]["z"], "model-00001-of-00003.safetensors");
  EXPECT_EQ(index["weight_map"]["a"], "model-00001-of-00003.safetensors");
  EXPECT_EQ(index["weight_map"]["large"], "model-00002-of-00003.safetensors");
  EXPECT_EQ(index["weight_map"]["b"], "model-00003-of-00003.safetensors");
}

TEST(WeightsWriter, AnEarlierSaveIsNotTakenForTheNewOne) {
  const TemporaryFolder folder;
  ZeroTensors zeros;
  const std::vector<TensorToWrite> tensors{zeros.make("a", {4}), zeros.make("b", {4})};
  (void)folder.write("tokenizer.json", "{}");
  (void)folder.write("model-00001-of-00009.safetensors.new", "left by a run that was killed");
  write_model_weights(folder.path(), {tensors[0]});
  write_model_weights(folder.path(), tensors, 16);
  EXPECT_EQ(ModelWeights(folder.path()).names().size(), 2U);
  write_model_weights(folder.path(), {tensors[1]});
  EXPECT_EQ(names_in(folder.path()),
            (std::vector<std::string>{"model.safetensors", "tokenizer.json"}));
}

TEST(WeightsWriter, OverwritesTheFilesItsTensorsAreMappedFrom) {
  const TemporaryFolder folder;
  ZeroTensors zeros;
  write_model_weights(folder.path(), {zeros.make("a", {4}), zeros.make("b", {4})}, 16);
  const ModelWeights weights(folder.path());
  write_model_weights(folder.path(),
                      {to_write("a", weights.at("a")), to_write("b", weights.at("b"))});
  EXPECT_EQ(ModelWeights(folder.path()).at("b").bytes.size(), 16U);
}

TEST(WeightsWriter, AFailedWriteLeavesTheEarlierSave) {
  const TemporaryFolder folder;
  ZeroTensors zeros;
  const std::vector<TensorToWrite> tensors{zeros.make("a", {4}), zeros.make("b", {4})};
  write_model_weights(folder.path(), tensors, 16);
  // A folder stands where the second part is to be written.
  std::filesystem::create_directory(folder.path() / "model-00002-of-00002.safetensors.new");
  const std::string before =
      read_file(folder.path() / "model-00001-of-00002.safetensors", ErrorKind::kModel);
  EXPECT_THROW(write_model_weights(folder.path(), {zeros.make("a", {4}), zeros.make("c", {4})}, 16),
               Error);
  EXPECT_EQ(read_file(folder.path() / "model-00001-of-00002.safetensors", ErrorKind::kModel),
            before);
  EXPECT_EQ(ModelWeights(folder.path()).names(), (std::vector<std::string>{"a", "b"}));
}

TEST(WeightsWriter, TheChecksumFollowsTheContentAlone) {
  ZeroTensors zeros;
  const TensorToWrite a = zeros.make("a", {2, 2});
  const TensorToWrite b = zeros.make("b", {2});
  EXPECT_EQ(content_checksum({a, b}), content_checksum({b, a}));
  EXPECT_EQ(content_checksum({a, b}).size(), 16U);
  TensorToWrite renamed = a;
  renamed.name = "c";
  TensorToWrite reshaped = a;
  reshaped.shape = {4};
  TensorToWrite changed = a;
  const std::vector<std::byte> ones(16, std::byte{1});
  changed.bytes = ones;
  for (const TensorToWrite& other : {renamed, reshaped, changed}) {
    EXPECT_NE(content_checksum({a, b}), content_checksum({other, b}));
  }
}

TEST(WeightsWriter, TheConfigComesBackWithTheTypeWritten) {
  const TemporaryFolder folder;
  const auto copied = [&](const char* given, DType dtype) {
    ModelConfig config;
    config.raw = parse_json(given, "", ErrorKind::kModel);
    copy_config(config, dtype, folder.path());
    return parse_json(
               read_file(folder.path() / "config.json", ErrorKind::kModel), "", ErrorKind::kModel)
        .dump();
  };
  EXPECT_EQ(copied(R"({"b":1,"torch_dtype":"float32","a":1e-05})", DType::kBF16),
            R"({"b":1,"torch_dtype":"bfloat16","a":1e-05})");
  EXPECT_EQ(copied(R"({"dtype":"bfloat16"})", DType::kF32), R"({"dtype":"float32"})");
  EXPECT_EQ(copied(R"({"a":1})", DType::kF32), R"({"a":1,"torch_dtype":"float32"})");
}

}  // namespace
}  // namespace zeroth::formats
