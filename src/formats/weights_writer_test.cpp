#include "formats/weights_writer.h"

#include <algorithm>

#define XXH_INLINE_ALL
#include "base/json.h"
#include "formats/test_files.h"
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <xxhash.h>

namespace zeroth::formats {
namespace {

using testing::FileSizeLimit;
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

std::vector<std::string> hashes(const std::vector<std::filesystem::path>& files) {
  std::vector<std::string> result;
  for (const std::filesystem::path& path : files) {
    const std::string content = read_file(path, ErrorKind::kModel);
    result.push_back(fmt::format("{:016x}", XXH3_64bits(content.data(), content.size())));
  }
  return result;
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
  changed.bytes = ready(ones);
  for (const TensorToWrite& other : {renamed, reshaped, changed}) {
    EXPECT_NE(content_checksum({a, b}), content_checksum({other, b}));
  }
}

// What the bytes of the files were in the first version that wrote them.
TEST(WeightsWriter, TheSameWeightsGiveTheSameBytesAsEver) {
  const std::filesystem::path golden = ZEROTH_SOURCE_DIR "/tests/golden/transformers";
  const TemporaryFolder folder;
  const ModelWeights weights(golden / "llama3");
  std::vector<TensorToWrite> tensors;
  for (const std::string& name : weights.names()) {
    tensors.push_back(to_write(name, weights.at(name)));
  }
  EXPECT_EQ(hashes(write_model_weights(folder.path(), tensors)),
            (std::vector<std::string>{"942deb74072fff45"}));
  EXPECT_EQ(hashes(write_model_weights(folder.path(), tensors, 70000)),
            (std::vector<std::string>{"5a8cbbbbfc4aa807",
                                      "7f5f0761ca99b8f6",
                                      "006b7336675e682a",
                                      "f65b6b28c2f1c57a",
                                      "0de7e5696c311782",
                                      "1e6f40df88f0784f",
                                      "3944158ffa7e8dd8",
                                      "4642cfca169a1678"}));
  const SafetensorsFile adapter(golden / "peft/llama3/plain/adapter_model.safetensors");
  tensors.clear();
  for (const auto& [name, view] : adapter.tensors()) {
    tensors.push_back(to_write(name, view));
  }
  write_weights_file(folder.path() / "adapter.safetensors", tensors);
  EXPECT_EQ(hashes({folder.path() / "adapter.safetensors"}),
            (std::vector<std::string>{"37fb5a2885081040"}));
}

// Tensors that are made when they are asked for; each is spoilt when the next one is.
class Made {
 public:
  static constexpr std::int64_t kNumel = 1000;
  static constexpr std::size_t kBytes = kNumel * sizeof(float);

  [[nodiscard]] std::vector<TensorToWrite> tensors(const std::vector<std::string>& names) {
    std::vector<TensorToWrite> result;
    for (const std::string& name : names) {
      result.push_back(
          {.name = name, .shape = {kNumel}, .bytes = [this, name] { return make(name); }});
    }
    return result;
  }

  // Names, in the order in which they were asked for.
  [[nodiscard]] const std::vector<std::string>& asked() const { return asked_; }

  void throw_at(const std::string& name) { throws_at_ = name; }

 private:
  std::span<const std::byte> make(const std::string& name) {
    if (name == throws_at_) {
      throw Error(ErrorKind::kCommunication, "rank 1 has failed");
    }
    asked_.push_back(name);
    std::fill(current_.begin(), current_.end(), std::byte{0xee});
    current_.assign(kBytes, static_cast<std::byte>(name.back()));
    return current_;
  }

  std::vector<std::byte> current_;
  std::vector<std::string> asked_;
  std::string throws_at_;
};

TEST(WeightsWriter, NeedsOneTensorAtATime) {
  const TemporaryFolder folder;
  Made made;
  write_model_weights(folder.path(), made.tensors({"d", "a", "c", "b"}), 2 * Made::kBytes);
  // Cut in the order given, written by name within each part.
  EXPECT_EQ(made.asked(), (std::vector<std::string>{"a", "d", "b", "c"}));
  const ModelWeights weights(folder.path());
  for (const std::string& name : weights.names()) {
    const auto bytes = weights.at(name).bytes;
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), static_cast<std::byte>(name[0])),
              static_cast<std::ptrdiff_t>(Made::kBytes))
        << name;
    const SafetensorsFile part(weights.file_of(name));
    EXPECT_EQ(part.metadata().at(kChecksumKey), content_checksum(part));
  }
}

TEST(WeightsWriter, AWalkAsksInTheOrderOfTheWriter) {
  const TemporaryFolder folder;
  const std::vector<std::string> names{"q", "b", "z", "a", "m"};
  for (const std::uint64_t limit : {Made::kBytes, 2 * Made::kBytes, 5 * Made::kBytes}) {
    Made written;
    Made walked;
    write_model_weights(folder.path(), written.tensors(names), limit);
    walk_model_weights(walked.tensors(names), limit);
    EXPECT_EQ(walked.asked(), written.asked());
  }
  Made written;
  Made walked;
  write_weights_file(folder.path() / "x.safetensors", written.tensors(names));
  walk_weights_file(walked.tensors(names));
  EXPECT_EQ(walked.asked(), written.asked());
}

TEST(WeightsWriter, ATensorThatCannotBeMadeLeavesTheEarlierSave) {
  const TemporaryFolder folder;
  Made first;
  write_model_weights(folder.path(), first.tensors({"a", "b"}));
  for (const std::uint64_t limit : {Made::kBytes, kMaxFileBytes}) {
    Made second;
    second.throw_at("d");
    testing::expect_error(
        [&] {
          write_model_weights(folder.path(), second.tensors({"c", "d"}), limit);
        },
        ErrorKind::kCommunication,
        {"rank 1 has failed"});
    EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"model.safetensors"}));
    EXPECT_EQ(ModelWeights(folder.path()).names(), (std::vector<std::string>{"a", "b"}));
  }
}

TEST(WeightsWriter, ADiskThatIsFullHalfWayLeavesTheEarlierSave) {
  const TemporaryFolder folder;
  Made made;
  write_model_weights(folder.path(), made.tensors({"a"}));
  {
    const FileSizeLimit limit(2 * Made::kBytes);
    testing::expect_error(
        [&] {
          write_model_weights(folder.path(), made.tensors({"b", "c", "d", "e"}));
        },
        ErrorKind::kDisk,
        {"model.safetensors", "Nothing was replaced"});
  }
  EXPECT_EQ(ModelWeights(folder.path()).names(), (std::vector<std::string>{"a"}));
  EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"model.safetensors"}));
}

TEST(WeightsWriter, BytesThatAreNotThoseOfTheShapeAreABug) {
  const TemporaryFolder folder;
  ZeroTensors zeros;
  TensorToWrite tensor = zeros.make("a", {4});
  tensor.shape = {5};
  testing::expect_error([&] { write_model_weights(folder.path(), {tensor}); },
                        ErrorKind::kInternal,
                        {"tensor a", "[5]", "16 bytes"});
  EXPECT_TRUE(names_in(folder.path()).empty());
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
