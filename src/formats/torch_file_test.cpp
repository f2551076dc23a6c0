#include "formats/torch_file.h"

#include <cstring>

#include "formats/damage.h"
#include "formats/half.h"
#include "formats/pickle.h"
#include "formats/safetensors_header.h"
#include <gtest/gtest.h>

// Files of torch.save, made by PyTorch itself (tests/golden/make_torch_files.py), and texts that no
// PyTorch writes.
namespace zeroth::formats {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;

fs::path golden(const std::string& name) {
  return fs::path(ZEROTH_SOURCE_DIR) / "tests" / "golden" / "torch" / name;
}

std::vector<float> floats_of(const TensorView& view) {
  std::vector<float> values(view.bytes.size() / element_bytes(view.dtype));
  copy_as_float(view, 0, values);
  return values;
}

std::vector<float> counted(std::size_t from, std::size_t count) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(from + i) / 4);
  }
  return values;
}

void expect_state(const TorchFile& file) {
  EXPECT_EQ(file.tensors().size(), 8U);
  const TensorView& embed = file.at("embed.weight");
  EXPECT_EQ(embed.dtype, DType::kF32);
  EXPECT_EQ(embed.shape, (std::vector<std::int64_t>{6, 4}));
  EXPECT_EQ(floats_of(embed), counted(0, 24));
  EXPECT_EQ(file.at("head.weight").bytes.data(), embed.bytes.data()) << "one storage, two names";
  EXPECT_EQ(file.at("rows_2_to_4").shape, (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(floats_of(file.at("rows_2_to_4")), counted(8, 12));
  EXPECT_EQ(file.at("block.0.norm.weight").dtype, DType::kF16);
  EXPECT_EQ(floats_of(file.at("block.0.norm.weight")), counted(0, 4));
  EXPECT_EQ(file.at("block.0.up.weight").dtype, DType::kBF16);
  EXPECT_EQ(floats_of(file.at("block.0.up.weight")), counted(0, 32));
  EXPECT_TRUE(file.at("scalar").shape.empty());
  EXPECT_EQ(floats_of(file.at("scalar")), (std::vector<float>{2.5F}));
  EXPECT_TRUE(file.at("empty").bytes.empty());
  EXPECT_EQ(file.at("ids").dtype, DType::kI64);
  EXPECT_EQ(file.at("ids").bytes.size(), 24U);
}

TEST(TorchFile, HoldsWhatPyTorchSaved) {
  expect_state(TorchFile(golden("state.bin")));
  expect_state(TorchFile(golden("protocol4.bin")));
}

TEST(TorchFile, WhatIsNotReadIsRefusedByName) {
  const auto refused = [](const std::string& name, const std::vector<std::string>& parts) {
    expect_error([&] { TorchFile file(golden(name)); }, ErrorKind::kNotSupported, parts);
  };
  refused("before_1_6.bin", {"before_1_6.bin", "PyTorch before 1.6"});
  refused("view.bin", {"turned [2, 3]", "strides [1, 2]"});
  refused("runs.bin", {"runs.bin asks for \"posix.system\"", "Nothing was run"});
}

TEST(TorchFile, WhatHoldsOtherThingsThanTensorsIsNoModel) {
  expect_error([] { TorchFile file(golden("other.bin")); },
               ErrorKind::kFormat,
               {"other.bin", "entry \"model\" is no tensor"});
}

TEST(TorchFile, OtherFilesAreNamed) {
  const testing::TemporaryFolder folder;
  expect_error([&] { TorchFile file(folder.write("a.bin", "version https://git-lfs")); },
               ErrorKind::kFormat,
               {"a.bin is no file of torch.save", "Git LFS"});
  expect_error([&] { TorchFile file(folder.write("b.bin", "PK\x03\x04 and no more")); },
               ErrorKind::kFormat,
               {"b.bin is no sound ZIP archive"});
  expect_error([&] { TorchFile file(folder.path() / "c.bin"); }, ErrorKind::kModel, {"c.bin"});
}

// Weights have no checksum here, so a flipped weight is harmless in this sense: every view is
// within the file. Nothing else may come of damage.
TEST(TorchFile, DamageNeverGivesAViewBeyondTheFile) {
  const testing::TemporaryFolder folder;
  const fs::path path = folder.path() / "state.bin";
  fs::copy_file(golden("state.bin"), path);
  RandomStream random(20240301, 7);
  int detected = 0;
  constexpr int kTimes = 1000;
  for (int i = 0; i < kTimes; ++i) {
    const testing::Damage damage(path, random);
    try {
      const TorchFile file(path);
      for (const auto& [name, view] : file.tensors()) {
        const std::vector<std::byte> copy(view.bytes.begin(), view.bytes.end());
        EXPECT_EQ(copy.size(), bytes_of_shape(view.shape, view.dtype)) << name;
      }
    } catch (const Error& error) {
      ++detected;
      EXPECT_TRUE(error.kind() == ErrorKind::kFormat || error.kind() == ErrorKind::kNotSupported)
          << damage.text() << error.what();
    }
  }
  EXPECT_GT(detected, kTimes / 4);
}

void expect_no_state(const std::string& pickle, const std::vector<std::string>& parts) {
  expect_error([&] { (void)read_state_dict(std::as_bytes(std::span(pickle)), "x.bin"); },
               ErrorKind::kFormat,
               parts);
}

TEST(Pickle, TextsThatMakeNoSenseAreRefused) {
  using namespace std::string_literals;
  expect_no_state("", {"x.bin", "ends too early"});
  expect_no_state("\x80\x02}", {"ends too early"});
  expect_no_state(".", {"a value is missing"});
  expect_no_state("K\x01.", {"a dictionary of tensors is expected"});
  expect_no_state("h\x05.", {"was not there"});
  expect_no_state("t.", {"a mark is missing"});
  expect_no_state("}K\x01K\x02K\x03s.", {"no list or dictionary"});
  expect_no_state("}(K\x01u.", {"no list or dictionary"});
  expect_no_state("}(a.", {"a value is missing"});
  expect_no_state("}X\xff\xff\xff\xff"s, {"ends too early"});
  expect_no_state("\x8a\x09"s + std::string(9, '\x7f') + ".", {"too large"});
  expect_no_state("I1\n.", {"opcode 0x49", "byte 0"});
  expect_no_state("K\x01)R.", {"a call of"});
  expect_no_state("ccollections\nOrderedDict\nK\x01\x85R.", {"a call of collections.OrderedDict"});
  expect_no_state("K\x01Q.", {"a reference to a storage"});
  expect_no_state(
      "K\x01K\x02"
      "b.",
      {"has attributes"});
  expect_no_state(
      "}X\x01\x00\x00\x00"
      "aK\x01s."s,
      {"entry \"a\" is no tensor"});
}

// Lists may hold each other in a circle, a thousand deep or a million wide.
TEST(Pickle, NoTextTakesStackOrTimeBeyondItsLength) {
  std::string deep = "]";
  for (int i = 0; i < 300'000; ++i) {
    deep += "\x85";
  }
  expect_no_state(deep + ".", {"a dictionary of tensors is expected"});
  expect_no_state(
      "]q\x01h\x01"
      "a.",
      {"a dictionary of tensors is expected"});
  expect_no_state(std::string(2'000'000, 'N') + ".", {"more entries than any model"});
}

TEST(Pickle, NamesThatWeightsDoNotNeedAreRefused) {
  for (const std::string text : {"cos\nsystem\n.",
                                 "cbuiltins\neval\n.",
                                 "ctorch\nload\n.",
                                 "ctorch.storage\n_load_from_bytes\n."}) {
    expect_error([&] { (void)read_state_dict(std::as_bytes(std::span(text)), "x.bin"); },
                 ErrorKind::kNotSupported,
                 {"x.bin asks for", "Nothing was run"});
  }
}

}  // namespace
}  // namespace zeroth::formats
