#include <algorithm>

#include "formats/safetensors.h"
#include "formats/test_files.h"
#include "formats/weights_writer.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace zeroth::formats {
namespace {

using testing::expect_error;
using testing::TemporaryFolder;
using testing::ZeroTensors;

// Three tensors in three file parts: a -> 00001, b -> 00002, c -> 00003.
void write_three_parts(const TemporaryFolder& folder) {
  ZeroTensors zeros;
  write_model_weights(
      folder.path(), {zeros.make("a", {4}), zeros.make("b", {4}), zeros.make("c", {4})}, 16);
}

std::function<void()> open(const TemporaryFolder& folder) {
  return [&folder] { ModelWeights weights(folder.path()); };
}

TEST(ModelWeights, ReadsASingleFile) {
  const TemporaryFolder folder;
  ZeroTensors zeros;
  write_model_weights(folder.path(), {zeros.make("b", {4}), zeros.make("a", {2})});
  const ModelWeights weights(folder.path());
  EXPECT_EQ(weights.names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(weights.at("b").bytes.size(), 16U);
  EXPECT_EQ(weights.file_of("b").filename(), "model.safetensors");
  expect_error([&] { (void)weights.at("aa"); }, ErrorKind::kModel, {"\"aa\"", "a", "2 names"});
  expect_error([&] { (void)weights.file_of("aa"); }, ErrorKind::kModel, {"\"aa\""});
}

TEST(ModelWeights, ReadsFileParts) {
  const TemporaryFolder folder;
  write_three_parts(folder);
  const ModelWeights weights(folder.path());
  EXPECT_EQ(weights.names(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(weights.file_of("c").filename(), "model-00003-of-00003.safetensors");
  EXPECT_TRUE(weights.contains("b"));
  EXPECT_FALSE(weights.contains("d"));
}

TEST(ModelWeights, AMissingPartIsNamed) {
  const TemporaryFolder folder;
  write_three_parts(folder);
  std::filesystem::remove(folder.path() / "model-00002-of-00003.safetensors");
  expect_error(open(folder),
               ErrorKind::kModel,
               {"1 of the 3 file parts", "model-00002-of-00003.safetensors", "index.json"});
}

TEST(ModelWeights, ATensorMissingFromItsPartIsNamed) {
  const TemporaryFolder folder;
  write_three_parts(folder);
  ZeroTensors zeros;
  write_safetensors(
      folder.path() / "model-00002-of-00003.safetensors", {zeros.make("other", {1})}, {});
  expect_error(open(folder),
               ErrorKind::kModel,
               {"b should stand in model-00002-of-00003.safetensors",
                "other stands in model-00002-of-00003.safetensors but not in the index"});
}

TEST(ModelWeights, AnIndexThatIsNoIndexIsRefused) {
  const TemporaryFolder folder;
  const auto fault = [&](const std::string& index, const std::string& part) {
    (void)folder.write("model.safetensors.index.json", index);
    expect_error(open(folder), ErrorKind::kFormat, {"model.safetensors.index.json", part});
  };
  fault("{", "not valid JSON");
  fault("[]", "object is expected");
  fault("{}", "weight_map");
  fault(R"({"weight_map": {}})", "weight_map");
  fault(R"({"weight_map": {"a": 3}})", "not the name of a file");
  fault(R"({"weight_map": {"a": "../x.safetensors"}})", "not the name of a file");
  fault(R"({"weight_map": {"a": "/etc/passwd"}})", "not the name of a file");
  fault(R"({"weight_map": {"a": "x", "a": "y"}})", "stands twice");
}

TEST(ModelWeights, OtherFormatsAreRefusedByName) {
  for (const char* name : {"tf_model.h5", "consolidated.00.pth", "model-q4.gguf"}) {
    const TemporaryFolder folder;
    (void)folder.write("config.json", "{}");
    (void)folder.write(name, "x");
    expect_error(open(folder),
                 ErrorKind::kNotSupported,
                 {name, "save_pretrained", "safe_serialization=True"});
  }
}

TEST(ModelWeights, PartsWithoutTheirIndexAreNamed) {
  for (const std::string part :
       {"pytorch_model-00001-of-00002.bin", "model-00001-of-00002.safetensors"}) {
    const TemporaryFolder folder;
    (void)folder.write(part, "x");
    expect_error(open(folder), ErrorKind::kModel, {part, ".index.json", "complete"});
  }
}

TEST(ModelWeights, PyTorchsFilesAreRead) {
  const std::filesystem::path state = ZEROTH_SOURCE_DIR "/tests/golden/torch/state.bin";
  const TemporaryFolder folder;
  std::filesystem::copy_file(state, folder.path() / "pytorch_model-00001-of-00001.bin");
  const ModelWeights whole = [&] {
    std::filesystem::create_directory(folder.path() / "single");
    std::filesystem::copy_file(state, folder.path() / "single" / "pytorch_model.bin");
    return ModelWeights(folder.path() / "single");
  }();
  EXPECT_EQ(whole.names().size(), 8U);
  std::string index;
  for (const std::string& name : whole.names()) {
    index += fmt::format(
        "{}\"{}\": \"pytorch_model-00001-of-00001.bin\"", index.empty() ? "" : ", ", name);
  }
  (void)folder.write("pytorch_model.bin.index.json", "{\"weight_map\": {" + index + "}}");
  const ModelWeights parts(folder.path());
  EXPECT_EQ(parts.names(), whole.names());
  EXPECT_TRUE(std::ranges::equal(parts.at("scalar").bytes, whole.at("scalar").bytes));
  // Safetensors come first, as in Transformers.
  ZeroTensors zeros;
  write_safetensors(folder.path() / "model.safetensors", {zeros.make("a", {1})}, {});
  EXPECT_EQ(ModelWeights(folder.path()).names(), (std::vector<std::string>{"a"}));
}

TEST(ModelWeights, AFolderWithoutWeightsIsSaidSo) {
  const TemporaryFolder folder;
  expect_error(open(folder), ErrorKind::kModel, {"holds no weights", "model.safetensors"});
  (void)folder.write("adapter_model.safetensors", "x");
  expect_error(open(folder), ErrorKind::kModel, {"is an adapter", "--adapter_name_or_path"});
  expect_error([] { ModelWeights weights("/nowhere"); }, ErrorKind::kModel, {"not a folder"});
}

}  // namespace
}  // namespace zeroth::formats
