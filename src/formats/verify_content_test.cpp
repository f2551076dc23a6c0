#include "formats/verify_content.h"

#include <map>
#include <tuple>

#include "formats/adapter.h"
#include "formats/damage.h"
#include "formats/model_config.h"
#include "formats/weights_writer.h"
#include <gtest/gtest.h>

namespace zeroth::formats {
namespace {

namespace fs = std::filesystem;
using testing::RandomTensors;
using testing::TemporaryFolder;

constexpr int kTimes = 1000;
const std::vector<ErrorKind> kTold{ErrorKind::kFormat, ErrorKind::kModel};

using Values = std::map<std::string, std::tuple<DType, std::vector<std::int64_t>, std::string>>;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// As a run loads a model.
Values model_values(const fs::path& folder) {
  const ModelWeights weights(folder);
  verify_content(weights);
  Values values;
  for (const std::string& name : weights.names()) {
    const TensorView& view = weights.at(name);
    values[name] = {view.dtype, view.shape, text_of(view.bytes)};
  }
  return values;
}

Values file_values(const fs::path& path) {
  const SafetensorsFile file(path);
  verify_content(file);
  Values values;
  for (const auto& [name, view] : file.tensors()) {
    values[name] = {view.dtype, view.shape, text_of(view.bytes)};
  }
  return values;
}

std::vector<TensorToWrite> model_tensors(RandomTensors& numbers) {
  return {numbers.make("model.embed_tokens.weight", {32, 8}),
          numbers.make("model.layers.0.self_attn.q_proj.weight", {8, 8}, DType::kBF16),
          numbers.make("model.layers.0.mlp.up_proj.weight", {16, 8}, DType::kF16),
          numbers.make("model.norm.weight", {8})};
}

TEST(VerifyContent, AThousandDamagesToAModelAreToldOrHarmless) {
  const TemporaryFolder folder;
  RandomTensors numbers;
  write_model_weights(folder.path(), model_tensors(numbers));
  const auto count = testing::damage_in_turn(
      testing::files_in(folder.path()), kTimes, kTold, [&] { return model_values(folder.path()); });
  EXPECT_GT(count.detected, kTimes * 9 / 10);  // padding and words of the metadata decide nothing
}

TEST(VerifyContent, AThousandDamagesToPartsAndTheirIndexAreToldOrHarmless) {
  const TemporaryFolder folder;
  RandomTensors numbers;
  write_model_weights(folder.path(), model_tensors(numbers), 300);
  const auto files = testing::files_in(folder.path());
  ASSERT_EQ(files.size(), 4U);
  const auto count =
      testing::damage_in_turn(files, kTimes, kTold, [&] { return model_values(folder.path()); });
  EXPECT_GT(count.detected, kTimes / 2);  // white space of the index, and its total size
}

TEST(VerifyContent, AThousandDamagesToAnAdaptersWeightsAreToldOrHarmless) {
  const TemporaryFolder folder;
  RandomTensors numbers;
  const fs::path path = folder.path() / kAdapterWeightsFile;
  const std::string module = "model.layers.0.self_attn.q_proj";
  write_weights_file(path,
                     {numbers.make(adapter_tensor_name(module, 'A'), {4, 8}),
                      numbers.make(adapter_tensor_name(module, 'B'), {8, 4})});
  const auto count =
      testing::damage_in_turn({path}, kTimes, kTold, [&] { return file_values(path); });
  EXPECT_GT(count.detected, kTimes * 8 / 10);
}

// People edit these, and no checksum holds them to what was written: what is read is a value that
// somebody could have meant, or an error.
TEST(VerifyContent, DamagedSettingsNeverCrashTheirReaders) {
  const TemporaryFolder folder;
  write_adapter_config(folder.path(),
                       {.base_model_name_or_path = "base",
                        .rank = 16,
                        .alpha = 32,
                        .dropout = 0.05,
                        .target_modules = {"q_proj", "v_proj"}});
  RandomStream random(3, 5);
  for (int i = 0; i < kTimes; ++i) {
    const testing::Damage damage(folder.path() / kAdapterConfigFile, random);
    try {
      const AdapterConfig config = read_adapter_config(folder.path());
      EXPECT_GE(config.rank, 1) << damage.text();
      EXPECT_FALSE(config.target_modules.empty()) << damage.text();
    } catch (const Error& error) {
      EXPECT_TRUE(error.kind() == ErrorKind::kModel || error.kind() == ErrorKind::kNotSupported)
          << damage.text() << ": " << error.what();
    }
  }
}

TEST(VerifyContent, AFlippedBitIsToldWithTheFile) {
  const TemporaryFolder folder;
  RandomTensors numbers;
  write_model_weights(folder.path(), model_tensors(numbers));
  const fs::path path = folder.path() / "model.safetensors";
  std::string content = read_file(path, ErrorKind::kModel);
  content.back() = static_cast<char>(content.back() ^ 1);
  (void)folder.write("model.safetensors", content);
  EXPECT_EQ(verdict_on(SafetensorsFile(path)), ContentVerdict::kDamaged);
  testing::expect_error([&] { (void)model_values(folder.path()); },
                        ErrorKind::kFormat,
                        {path.string(), "is damaged", "zeroth_xxh3", "Copy it again"});
}

TEST(VerifyContent, AFileOfOthersBringsNoChecksum) {
  const TemporaryFolder folder;
  RandomTensors numbers;
  const fs::path path = folder.path() / "model.safetensors";
  write_safetensors(path, model_tensors(numbers), {{"format", "pt"}});
  EXPECT_EQ(verdict_on(SafetensorsFile(path)), ContentVerdict::kNoChecksum);
  verify_content(ModelWeights(folder.path()));
}

// Two ranks of a host read one half each.
TEST(VerifyContent, RanksShareTheFiles) {
  const TemporaryFolder folder;
  RandomTensors numbers;
  write_model_weights(folder.path(), model_tensors(numbers), 300);
  const fs::path second = folder.path() / "model-00002-of-00003.safetensors";
  std::string content = read_file(second, ErrorKind::kModel);
  content.back() = static_cast<char>(content.back() ^ 1);
  (void)folder.write(second.filename().string(), content);
  const ModelWeights weights(folder.path());
  ASSERT_EQ(weights.files().size(), 3U);
  verify_content(weights, 0, 2);
  EXPECT_THROW(verify_content(weights, 1, 2), Error);
  EXPECT_THROW(verify_content(weights), Error);
}

}  // namespace
}  // namespace zeroth::formats
