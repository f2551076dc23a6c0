#include "formats/safetensors.h"

#include <cstring>

#include "base/random.h"
#include "formats/test_files.h"
#include <gtest/gtest.h>

namespace zeroth::formats {
namespace {

using testing::expect_error;
using testing::TemporaryFolder;

// A file from its header text and a buffer of `buffer_bytes` bytes.
std::string file_of(const std::string& header, std::size_t buffer_bytes) {
  std::string file;
  for (std::size_t i = 0; i < 8; ++i) {
    file += static_cast<char>(header.size() >> (8 * i));
  }
  return file + header + std::string(buffer_bytes, '\7');
}

std::string one_tensor(const std::string& fields) {
  return "{\"w\":{" + fields + "}}";
}

void expect_fault(const std::string& content,
                  const std::vector<std::string>& parts,
                  ErrorKind kind = ErrorKind::kFormat) {
  const TemporaryFolder folder;
  const auto path = folder.write("model.safetensors", content);
  std::vector<std::string> all_parts = parts;
  all_parts.push_back(path.string());
  expect_error([&] { SafetensorsFile file(path); }, kind, all_parts);
}

TEST(Safetensors, WritesWhatItReads) {
  const TemporaryFolder folder;
  const std::vector<float> a{1, 2, 3, 4, 5, 6};
  const std::vector<std::uint16_t> b{0x3f80};
  write_safetensors(
      folder.path() / "x.safetensors",
      {{"b", DType::kBF16, {}, ready(std::as_bytes(std::span(b)))},
       {"a \"quoted\" \n name", DType::kF32, {2, 3}, ready(std::as_bytes(std::span(a)))},
       {"empty", DType::kI64, {0, 4}, ready({})}},
      {{"format", "pt"}});
  const SafetensorsFile file(folder.path() / "x.safetensors");
  EXPECT_EQ(file.tensors().size(), 3U);
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"format", "pt"}}));
  const TensorView& view = file.at("a \"quoted\" \n name");
  EXPECT_EQ(view.shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(view.dtype, DType::kF32);
  ASSERT_EQ(view.bytes.size(), 24U);
  EXPECT_EQ(std::memcmp(view.bytes.data(), a.data(), 24), 0);
  EXPECT_TRUE(file.at("b").shape.empty());
  EXPECT_EQ(file.at("b").bytes.size(), 2U);
  EXPECT_TRUE(file.at("empty").bytes.empty());
}

TEST(Safetensors, ALargerElementComesFirstThenTheName) {
  const TemporaryFolder folder;
  testing::ZeroTensors zeros;
  write_safetensors(
      folder.path() / "x.safetensors",
      {zeros.make("c", {1}, DType::kBF16), zeros.make("b", {1}), zeros.make("a", {1})},
      {});
  const SafetensorsFile file(folder.path() / "x.safetensors");
  EXPECT_LT(file.at("a").bytes.data(), file.at("b").bytes.data());
  EXPECT_LT(file.at("b").bytes.data(), file.at("c").bytes.data());
  const std::string content = read_file(folder.path() / "x.safetensors", ErrorKind::kModel);
  EXPECT_EQ(static_cast<unsigned char>(content[0]) % 8, 0);  // the buffer is aligned to 8 bytes
}

// A run that saves over the model that it reads keeps what it reads.
TEST(Safetensors, AFileThatIsWrittenOverStaysAsItWasForItsReaders) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "x.safetensors";
  const std::vector<float> before(5000, 1);
  const std::vector<float> after(10, 2);
  write_safetensors(
      path, {{"a", DType::kF32, {5000}, ready(std::as_bytes(std::span(before)))}}, {});
  const SafetensorsFile file(path);
  write_safetensors(path, {{"a", DType::kF32, {10}, ready(std::as_bytes(std::span(after)))}}, {});
  const std::span<const std::byte> bytes = file.at("a").bytes;
  EXPECT_EQ(std::memcmp(bytes.data(), before.data(), bytes.size()), 0);
  EXPECT_EQ(SafetensorsFile(path).at("a").bytes.size(), 40U);
}

TEST(Safetensors, RewritesRealFilesByteForByte) {
  if (!testing::has_shared_data()) {
    GTEST_SKIP() << "needs ../shared/data";
  }
  const TemporaryFolder folder;
  for (const char* name : {"models/tiny-random-llama-2/model.safetensors",
                           "models/stories260K-hf/model.safetensors",
                           "reference/transformers/peft/llama3/plain/adapter_model.safetensors",
                           "reference/transformers/llama3/inputs.safetensors"}) {
    const SafetensorsFile file(testing::shared_data() / name);
    std::vector<TensorToWrite> tensors;
    for (const auto& [tensor, view] : file.tensors()) {
      tensors.push_back(to_write(tensor, view));
    }
    write_safetensors(folder.path() / "copy.safetensors", tensors, file.metadata());
    EXPECT_EQ(read_file(folder.path() / "copy.safetensors", ErrorKind::kModel),
              read_file(file.path(), ErrorKind::kModel))
        << name;
  }
}

TEST(Safetensors, AMissingFileIsAModelError) {
  expect_error([] { SafetensorsFile file("/nowhere/model.safetensors"); },
               ErrorKind::kModel,
               {"/nowhere/model.safetensors", "No such file"});
  const TemporaryFolder folder;
  expect_error([&] { SafetensorsFile file(folder.path()); }, ErrorKind::kModel, {"not a regular"});
}

TEST(Safetensors, ATensorThatIsNotThereIsNamedWithTheNearest) {
  const TemporaryFolder folder;
  testing::ZeroTensors zeros;
  const auto path = folder.path() / "x.safetensors";
  write_safetensors(path, {zeros.make("model.norm.weight", {2})}, {});
  const SafetensorsFile file(path);
  EXPECT_TRUE(file.contains("model.norm.weight"));
  EXPECT_FALSE(file.contains("norm.weight"));
  expect_error([&] { (void)file.at("model.norm.weigth"); },
               ErrorKind::kModel,
               {"model.norm.weigth", "model.norm.weight", path.string()});
}

TEST(Safetensors, TruncationSaysHowManyBytesAreMissing) {
  const std::string header = one_tensor(R"("dtype":"F32","shape":[4],"data_offsets":[0,16])");
  const std::string whole = file_of(header, 16);
  expect_fault(whole.substr(0, whole.size() - 5), {"truncated", "5 bytes are missing"});
  expect_fault(whole.substr(0, 20), {"truncated", std::to_string(8 + header.size() - 20)});
  expect_fault("abc", {"truncated", "5 bytes are missing"});
  expect_fault("", {"truncated", "8 bytes are missing"});
}

TEST(Safetensors, WhatIsNoSafetensorsIsSaidSo) {
  expect_fault("version https://git-lfs.github.com/spec/v1\noid sha256:00\n", {"git lfs pull"});
  expect_fault("PK\3\4 some zip archive of pytorch weights", {"not a safetensors file"});
  expect_fault(file_of("[1]", 0), {"does not start with"});
  expect_fault(file_of("{\"w\":", 0), {"not valid JSON"});
  expect_fault(file_of("", 0), {"does not start with"});
}

TEST(Safetensors, FieldsOfATensorAreProved) {
  const auto fault = [](const std::string& fields, const std::string& part) {
    expect_fault(file_of(one_tensor(fields), 16), {"tensor \"w\"", part});
  };
  fault(R"("shape":[4],"data_offsets":[0,16])", "dtype is missing");
  fault(R"("dtype":"F32","data_offsets":[0,16])", "shape is missing");
  fault(R"("dtype":"F32","shape":[4])", "data_offsets is missing");
  fault(R"("dtype":"F99","shape":[4],"data_offsets":[0,16])", "unknown dtype \"F99\"");
  fault(R"("dtype":7,"shape":[4],"data_offsets":[0,16])", "dtype must be a string");
  fault(R"("dtype":"F32","shape":4,"data_offsets":[0,16])", "shape must be a list");
  fault(R"("dtype":"F32","shape":[-4],"data_offsets":[0,16])", "has -4");
  fault(R"("dtype":"F32","shape":[4.0],"data_offsets":[0,16])", "has 4.0");
  fault(R"("dtype":"F32","shape":[4],"data_offsets":[0])", "no range");
  fault(R"("dtype":"F32","shape":[4],"data_offsets":[16,0])", "no range");
  fault(R"("dtype":"F32","shape":[4],"data_offsets":[0,16],"more":1)", "unknown field \"more\"");
  fault(R"("dtype":"F32","shape":[3],"data_offsets":[0,16])", "takes 12 bytes");
  fault(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,16])", "overflows");
  fault(R"("dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,16])", "too large");
  expect_fault(file_of(R"({"w":[]})", 0), {"tensor \"w\"", "must be an object"});
}

TEST(Safetensors, ATypeOfTheFormatThatIsNotReadIsNotSupported) {
  const std::string header = one_tensor(R"("dtype":"F8_E8M0","shape":[4],"data_offsets":[0,4])");
  expect_fault(file_of(header, 4), {"F8_E8M0", "bfloat16"}, ErrorKind::kNotSupported);
}

TEST(Safetensors, TensorsTileTheBuffer) {
  const auto two = [](const std::string& a, const std::string& b) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + a +
           R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}";
  };
  expect_fault(file_of(two("[0,4]", "[5,9]"), 9), {"tensor \"b\"", "leave a hole"});
  expect_fault(file_of(two("[1,5]", "[5,9]"), 9), {"tensor \"a\"", "leave a hole"});
  expect_fault(file_of(two("[0,4]", "[3,7]"), 7), {"tensor \"b\"", "overlap"});
  expect_fault(file_of(two("[0,4]", "[0,4]"), 4), {"overlap"});
  expect_fault(file_of(two("[0,4]", "[4,8]"), 11), {"3 bytes follow the last tensor"});
}

TEST(Safetensors, AKeyThatStandsTwiceIsAnError) {
  const std::string w = R"("w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
  expect_fault(file_of("{" + w + "," + w + "}", 4), {"\"w\" stands twice"});
  // The same name, once spelt with an escape.
  const std::string escaped = R"("\u0077":{"dtype":"U8","shape":[4],"data_offsets":[4,8]})";
  expect_fault(file_of("{" + w + "," + escaped + "}", 8), {"\"w\" stands twice"});
}

TEST(Safetensors, MetadataHoldsStrings) {
  expect_fault(file_of(R"({"__metadata__":{"format":1}})", 0),
               {"__metadata__", "must be a string"});
  expect_fault(file_of(R"({"__metadata__":[]})", 0), {"__metadata__", "must be an object"});
}

}  // namespace
}  // namespace zeroth::formats
