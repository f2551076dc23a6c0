#include "formats/safetensors_header.h"

#include <array>

#include "base/random.h"
#include "formats/safetensors.h"
#include "formats/test_files.h"
#include <gtest/gtest.h>

// Damage of every kind, tried in memory: files would cost a second of writing.
namespace zeroth::formats {
namespace {

SafetensorsHeader parse(const std::string& file) {
  return parse_safetensors_header(std::as_bytes(std::span(file)), "damaged.safetensors");
}

// Whatever stands in the file, the reader refuses it or returns entries that tile the buffer.
void parse_or_refuse(const std::string& file) {
  try {
    const SafetensorsHeader header = parse(file);
    std::uint64_t end = 0;
    for (const HeaderEntry& entry : header.entries) {
      EXPECT_EQ(entry.begin, end);
      EXPECT_EQ(bytes_of_shape(entry.shape, entry.dtype), entry.end - entry.begin);
      end = entry.end;
    }
    EXPECT_EQ(header.buffer_begin + end, file.size());
  } catch (const Error& error) {
    EXPECT_TRUE(error.kind() == ErrorKind::kFormat || error.kind() == ErrorKind::kNotSupported)
        << error.what();
  }
}

std::string file_of(const std::string& header) {
  std::string file;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    file += static_cast<char>(header.size() >> (8 * i));
  }
  return file + header;
}

class DamagedSafetensors : public ::testing::Test {
 protected:
  DamagedSafetensors() {
    const testing::TemporaryFolder folder;
    testing::ZeroTensors zeros;
    const auto path = folder.path() / "whole.safetensors";
    write_safetensors(path,
                      {zeros.make("model.embed_tokens.weight", {8, 4}),
                       zeros.make("model.norm.weight", {4}, DType::kBF16),
                       zeros.make("ids", {3}, DType::kI64)},
                      {{"format", "pt"}});
    whole_ = read_file(path, ErrorKind::kModel);
    header_end_ = parse(whole_).buffer_begin;
  }

  std::string whole_;
  std::size_t header_end_ = 0;
};

TEST_F(DamagedSafetensors, RandomBytesNeverCrashTheReader) {
  RandomStream random(1, 1);
  for (int i = 0; i < 5000; ++i) {
    std::string damaged = whole_;
    for (std::uint64_t count = 1 + random.below(3); count > 0; --count) {
      damaged[random.below(header_end_)] = static_cast<char>(random.below(256));
    }
    parse_or_refuse(damaged);
  }
}

TEST_F(DamagedSafetensors, SwappedPiecesNeverCrashTheReader) {
  RandomStream random(1, 2);
  for (int i = 0; i < 1000; ++i) {
    std::string damaged = whole_;
    const std::size_t from = random.below(header_end_);
    const std::size_t to = random.below(header_end_);
    damaged.replace(to, 10, whole_.substr(from, 10));
    parse_or_refuse(damaged);
  }
}

// Pieces that go, come twice or become another number; the length in front fits again, so that the
// reader goes on to what the header says.
std::string rewritten_header(const std::string& header, RandomStream& random) {
  const std::size_t from = random.below(header.size());
  const std::size_t length = 1 + random.below(20);
  constexpr std::array kNumbers{"0",
                                "-1",
                                "1e9",
                                "4294967296",
                                "9223372036854775807",
                                "18446744073709551615",
                                "99999999999999999999",
                                "\"F64\"",
                                "[]"};
  std::string changed = header;
  switch (random.below(3)) {
    case 0:
      return changed.erase(from, length);
    case 1:
      return changed.insert(random.below(header.size()), header.substr(from, length));
    default: {
      const std::size_t digit = header.find_first_of("0123456789", from);
      const std::size_t end = header.find_first_not_of("0123456789", digit);
      return digit == std::string::npos || end == std::string::npos
                 ? changed
                 : changed.replace(digit, end - digit, kNumbers[random.below(kNumbers.size())]);
    }
  }
}

TEST_F(DamagedSafetensors, RewrittenHeadersNeverLeadBeyondTheFile) {
  RandomStream random(1, 3);
  const std::string header = whole_.substr(kLengthBytes, header_end_ - kLengthBytes);
  const std::string buffer = whole_.substr(header_end_);
  int refused = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string changed = file_of(rewritten_header(header, random)) + buffer;
    parse_or_refuse(changed);
    try {
      (void)parse(changed);
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 500);
}

TEST_F(DamagedSafetensors, EveryTruncationIsDetected) {
  for (std::size_t length = 0; length < whole_.size(); ++length) {
    testing::expect_error([&] { (void)parse(whole_.substr(0, length)); },
                          ErrorKind::kFormat,
                          {"truncated", "bytes are missing"});
  }
}

TEST_F(DamagedSafetensors, EveryChangedLengthByteIsDetected) {
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    for (int flip = 1; flip < 256; ++flip) {
      std::string damaged = whole_;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      EXPECT_THROW((void)parse(damaged), Error) << i << " " << flip;
    }
  }
}

TEST_F(DamagedSafetensors, EveryChangedDigitIsDetected) {
  for (std::size_t i = kLengthBytes; i < header_end_; ++i) {
    if (whole_[i] < '0' || whole_[i] > '9') {
      continue;
    }
    std::string damaged = whole_;
    damaged[i] = damaged[i] == '9' ? '1' : static_cast<char>(damaged[i] + 1);
    EXPECT_THROW((void)parse(damaged), Error) << damaged.substr(kLengthBytes, header_end_);
  }
}

TEST(SafetensorsHeader, DeepNestingIsRefusedWithoutRecursion) {
  constexpr std::size_t kDepth = 200000;
  const std::string open = "{\"w\":" + std::string(kDepth, '[');
  EXPECT_THROW((void)parse(file_of(open)), Error);
  EXPECT_THROW((void)parse(file_of(open + std::string(kDepth, ']') + "}")), Error);
}

}  // namespace
}  // namespace zeroth::formats
