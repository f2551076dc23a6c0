#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "formats/test_files.h"

// For tests: damage to files on the disk, drawn from a seed.
namespace zeroth::testing {

// One file of a folder with one byte changed, or cut short. What stood there comes back with the
// end of the object, so one folder serves for a thousand damages.
class Damage {
 public:
  Damage(std::filesystem::path path, RandomStream& random)
      : path_(std::move(path)), whole_(read_file(path_, ErrorKind::kInternal)) {
    std::string damaged = whole_;
    const std::uint64_t place = random.below(whole_.size());
    constexpr std::uint64_t kOneInFive = 5;
    if (random.below(kOneInFive) == 0) {
      damaged.resize(place);
      text_ = " cut to " + std::to_string(place) + " bytes";
    } else {
      const auto flipped = static_cast<unsigned char>(1 + random.below(255));
      damaged[place] = static_cast<char>(static_cast<unsigned char>(damaged[place]) ^ flipped);
      text_ = " byte " + std::to_string(place) + " xor " + std::to_string(flipped);
    }
    put(damaged);
  }

  Damage(const Damage&) = delete;
  Damage& operator=(const Damage&) = delete;

  ~Damage() { put(whole_); }

  [[nodiscard]] std::string text() const { return path_.filename().string() + text_; }

 private:
  void put(const std::string& content) const { std::ofstream(path_, std::ios::binary) << content; }

  std::filesystem::path path_;
  std::string whole_;
  std::string text_;
};

struct DamageCount {
  int detected = 0;
  int harmless = 0;
};

// Damages `files` in turn, `times` in all. Each time `read` must either throw an Error of one of
// `kinds`, or give what it gives without damage.
template <typename Read>
DamageCount damage_in_turn(const std::vector<std::filesystem::path>& files,
                           int times,
                           const std::vector<ErrorKind>& kinds,
                           const Read& read) {
  const auto whole = read();
  RandomStream random(20240229, 7);
  DamageCount count;
  for (int i = 0; i < times; ++i) {
    const Damage damage(files[static_cast<std::size_t>(i) % files.size()], random);
    try {
      EXPECT_EQ(read() == whole, true) << "other values in silence: " << damage.text();
      ++count.harmless;
    } catch (const Error& error) {
      EXPECT_NE(std::find(kinds.begin(), kinds.end(), error.kind()), kinds.end())
          << damage.text() << ": " << error.what();
      ++count.detected;
    }
  }
  return count;
}

inline std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Numbers that tell places apart, as weights do; their bytes live as long as the object.
class RandomTensors {
 public:
  [[nodiscard]] formats::TensorToWrite make(const std::string& name,
                                            std::vector<std::int64_t> shape,
                                            formats::DType dtype = formats::DType::kF32) {
    formats::TensorToWrite tensor{
        .name = name, .dtype = dtype, .shape = std::move(shape), .bytes = {}};
    std::vector<std::byte>& bytes = storage_.emplace_back(formats::size_to_write(tensor));
    for (std::byte& byte : bytes) {
      byte = static_cast<std::byte>(random_.below(256));
    }
    tensor.bytes = formats::ready(bytes);
    return tensor;
  }

 private:
  RandomStream random_{1, 3};
  std::vector<std::vector<std::byte>> storage_;  // moving an inner vector leaves its bytes in place
};

}  // namespace zeroth::testing
