#include "checkpoint/state_reader.h"

#include "checkpoint/folder.h"
#include "checkpoint/test_support.h"
#include "formats/damage.h"
#include <gtest/gtest.h>

namespace zeroth::checkpoint {
namespace {

using formats::DType;
using shard::Range;
using testing::Kind;
using zeroth::testing::expect_error;
using zeroth::testing::TemporaryFolder;

std::vector<float> read(StateReader& reader,
                        std::int64_t unit,
                        const std::string& what,
                        Range range) {
  std::vector<float> values(static_cast<std::size_t>(range.size()));
  reader.read(unit, what, range, values);
  return values;
}

// All state of all units that train, each kind from end to end.
std::vector<float> read_all(const std::filesystem::path& folder, const Manifest& manifest) {
  StateReader reader(folder, manifest);
  std::vector<float> all;
  for (std::size_t unit = 0; unit < manifest.units.size(); ++unit) {
    const Range whole{.begin = 0, .end = manifest.units[unit].numel()};
    for (const std::string& what : {std::string(kMaster), moment_name(0), moment_name(1)}) {
      if (what == kMaster || !manifest.only_weights()) {
        const auto part = read(reader, static_cast<std::int64_t>(unit), what, whole);
        all.insert(all.end(), part.begin(), part.end());
      }
    }
  }
  return all;
}

void expect_every_stretch(const Kind& kind) {
  const TemporaryFolder folder;
  const Manifest manifest = testing::write_checkpoint(folder.path(), kind);
  StateReader reader(folder.path(), manifest);
  constexpr std::int64_t kUnit = 2;
  const std::int64_t numel = manifest.units[kUnit].numel();
  for (const std::string& what : {std::string(kMaster), moment_name(0), moment_name(1)}) {
    for (std::int64_t begin = 0; begin < numel; ++begin) {
      for (std::int64_t end = begin + 1; end <= numel; ++end) {
        const Range range{.begin = begin, .end = end};
        ASSERT_EQ(read(reader, kUnit, what, range), testing::values_of(kUnit, what, range))
            << what << " [" << begin << ", " << end << ") of " << kind.ranks << " ranks";
      }
    }
  }
}

TEST(StateReader, AnyStretchAcrossTheBordersOfAnyNumberOfRanks) {
  for (const std::int64_t ranks : {1, 2, 3, 5, 19, 24}) {
    expect_every_stretch({.ranks = ranks});
  }
}

TEST(StateReader, TheMasterStandsInAResultOfFp32) {
  expect_every_stretch({.ranks = 2, .adapter = true, .result = DType::kF32});
  expect_every_stretch({.ranks = 2, .adapter = false, .result = DType::kF32});
}

TEST(StateReader, TheMasterOfARoundedResultStandsInTheState) {
  expect_every_stretch({.ranks = 2, .adapter = true, .result = DType::kBF16});
  expect_every_stretch({.ranks = 2, .adapter = false, .result = DType::kF16});
}

TEST(StateReader, WeightsAloneAreReadFromAResultOfAnyType) {
  for (const DType result : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const bool adapter : {false, true}) {
      const TemporaryFolder folder;
      const Manifest manifest = testing::write_checkpoint(
          folder.path(), {.adapter = adapter, .result = result, .only_weights = true});
      StateReader reader(folder.path(), manifest);
      const Range range{.begin = 10, .end = 15};  // the border of its two parameters is 12
      EXPECT_EQ(read(reader, 2, kMaster, range), testing::values_of(2, kMaster, range));
      expect_error([&] { (void)read(reader, 2, "moment_0", range); },
                   ErrorKind::kCheckpoint,
                   {folder.path().string(), "holds 0 of 5 elements of moment_0 of layer"});
    }
  }
}

TEST(StateReader, APieceThatIsNotThereIsTold) {
  const TemporaryFolder folder;
  Manifest manifest = testing::write_checkpoint(folder.path(), {.ranks = 2});
  std::erase_if(manifest.states,
                [](const StateEntry& state) { return state.unit == 2 && state.range.begin > 0; });
  StateReader reader(folder.path(), manifest);
  EXPECT_EQ(read(reader, 2, "moment_1", {.begin = 0, .end = 10}).size(), 10U);
  expect_error([&] { (void)read(reader, 2, "moment_1", {.begin = 0, .end = 19}); },
               ErrorKind::kCheckpoint,
               {"holds 10 of 19 elements of moment_1 of layer"});
}

TEST(StateReader, ATensorOfAnotherSizeIsRefused) {
  const TemporaryFolder folder;
  const Manifest manifest = testing::write_checkpoint(folder.path(), {});
  testing::Tensors tensors;
  tensors.add("layer/moment_0/0", {3}, {1, 2, 3});
  tensors.write(folder.path() / state_file(0, 1));
  StateReader reader(folder.path(), manifest);
  expect_error([&] { (void)read(reader, 2, "moment_0", {.begin = 0, .end = 2}); },
               ErrorKind::kCheckpoint,
               {"layer/moment_0/0", "is not what checkpoint.json says of it"});
}

TEST(VerifyFiles, ADamagedFileIsNamedByTheRankThatReadsIt) {
  const TemporaryFolder folder;
  const Manifest manifest = testing::write_checkpoint(folder.path(), {.ranks = 2});
  verify_files(folder.path(), manifest);
  ASSERT_EQ(manifest.files[2].name, state_file(0, 2));
  const auto path = folder.path() / manifest.files[2].name;
  std::string content = read_file(path, ErrorKind::kCheckpoint);
  content.back() = static_cast<char>(content.back() ^ 1);
  (void)folder.write(manifest.files[2].name, content);
  for (const std::int64_t part : {1, 3}) {
    verify_files(folder.path(), manifest, part, 4);
  }
  expect_error([&] { verify_files(folder.path(), manifest, 2, 4); },
               ErrorKind::kCheckpoint,
               {path.string(), "is damaged"});
  EXPECT_THROW(verify_files(folder.path(), manifest), Error);
}

// As a run that goes on from a checkpoint reads it.
std::pair<Manifest, std::vector<float>> opened(const std::filesystem::path& folder) {
  const std::string fault = fault_of(folder);
  if (!fault.empty()) {
    throw Error(ErrorKind::kCheckpoint, fault);
  }
  Manifest manifest = read_manifest(folder);
  verify_files(folder, manifest);
  std::vector<float> values = read_all(folder, manifest);
  return {std::move(manifest), std::move(values)};
}

void expect_thousand_told(const Kind& kind) {
  const TemporaryFolder folder;
  (void)testing::write_checkpoint(folder.path(), kind);
  constexpr int kTimes = 1000;
  const auto count = zeroth::testing::damage_in_turn(
      zeroth::testing::files_in(folder.path()),
      kTimes,
      {ErrorKind::kFormat, ErrorKind::kModel, ErrorKind::kCheckpoint},
      [&] { return opened(folder.path()); });
  EXPECT_GT(count.detected, kTimes * 3 / 4);  // the list's line breaks and spaces decide nothing
}

TEST(CheckpointDamage, AThousandDamagesToOneOfAnAdapterAreToldOrHarmless) {
  expect_thousand_told({.ranks = 2, .adapter = true, .result = DType::kF32});
}

TEST(CheckpointDamage, AThousandDamagesToOneOfAModelAreToldOrHarmless) {
  expect_thousand_told({.ranks = 3, .adapter = false, .result = DType::kBF16});
}

}  // namespace
}  // namespace zeroth::checkpoint
