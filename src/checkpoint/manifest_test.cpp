#include "checkpoint/manifest.h"

#include "checkpoint/test_support.h"
#include "formats/checksum.h"
#include "formats/test_files.h"
#include <gtest/gtest.h>

namespace zeroth::checkpoint {
namespace {

using testing::Kind;
using zeroth::testing::expect_error;
using zeroth::testing::TemporaryFolder;

std::string text_in(const TemporaryFolder& folder) {
  return read_file(folder.path() / kManifestFile, ErrorKind::kCheckpoint);
}

void replace_in(const TemporaryFolder& folder, const std::string& what, const std::string& by) {
  std::string text = text_in(folder);
  const auto place = text.find(what);
  ASSERT_NE(place, std::string::npos) << what << " is not in " << text;
  (void)folder.write(kManifestFile, text.replace(place, what.size(), by));
}

void expect_refused(const TemporaryFolder& folder, const std::string& part) {
  expect_error(
      [&] { (void)read_manifest(folder.path()); }, ErrorKind::kCheckpoint, {kManifestFile, part});
}

// With a checksum that fits, so that only what it says can be wrong.
void expect_wrong(const Manifest& manifest) {
  const TemporaryFolder folder;
  write_manifest(folder.path(), manifest);
  expect_refused(folder, "does not hold what it should");
}

Manifest small() {
  return {.units = testing::small_units(),
          .states = {{.unit = 2, .what = "moment_0", .range = {.begin = 3, .end = 19}, .file = 0}},
          .files = {{.name = "state-00000-of-00001.safetensors", .bytes = 9, .checksum = "00"}}};
}

TEST(Manifest, ComesBackAsItWasWritten) {
  const TemporaryFolder folder;
  const Manifest written =
      testing::write_checkpoint(folder.path(), {.ranks = 3, .result = formats::DType::kBF16});
  const Manifest read = read_manifest(folder.path());
  EXPECT_EQ(read, written);
  EXPECT_EQ(read.update, 20);
  EXPECT_EQ(read.units[2].numel(), 19);
  EXPECT_EQ(read.files.size(), 5U);
  EXPECT_FALSE(read.only_weights());
}

TEST(Manifest, ACheckpointOfWeightsAloneSaysSo) {
  const TemporaryFolder folder;
  (void)testing::write_checkpoint(folder.path(), {.only_weights = true});
  EXPECT_TRUE(read_manifest(folder.path()).only_weights());
}

TEST(Manifest, OneEditedByHandIsRefused) {
  const TemporaryFolder folder;
  (void)testing::write_checkpoint(folder.path(), {});
  replace_in(folder, "\"update\": 20", "\"update\": 21");
  expect_refused(folder, "was changed after it was written");
}

TEST(Manifest, WithoutItsChecksumItIsRefused) {
  const TemporaryFolder folder;
  (void)testing::write_checkpoint(folder.path(), {});
  replace_in(folder, "\"checksum\": \"", "\"checksum\": \"0");
  expect_refused(folder, "was changed after it was written");
  (void)folder.write(kManifestFile, R"({"layout": 1})");
  expect_refused(folder, "was changed after it was written");
}

TEST(Manifest, LineBreaksAndSpacesDecideNothing) {
  const TemporaryFolder folder;
  const Manifest written = testing::write_checkpoint(folder.path(), {});
  (void)folder.write(kManifestFile, Json::parse(text_in(folder)).dump());
  EXPECT_EQ(read_manifest(folder.path()), written);
}

TEST(Manifest, AnotherLayoutIsRefusedAsSuch) {
  const TemporaryFolder folder;
  (void)testing::write_checkpoint(folder.path(), {});
  replace_in(folder, "\"layout\": 1", "\"layout\": 2");
  expect_refused(folder, "has layout 2, and this version reads layout 1");
}

TEST(Manifest, WhatIsNoneIsRefused) {
  const TemporaryFolder folder;
  expect_refused(folder, "No such file");
  for (const char* text : {"{}", R"({"layout": "1"})", R"({"layout": 1.0})"}) {
    (void)folder.write(kManifestFile, text);
    expect_refused(folder, "is not a checkpoint's list of contents");
  }
  for (const char* text : {"", "{", "[1]", "{\"layout\": 1, \"layout\": 1}"}) {
    (void)folder.write(kManifestFile, text);
    expect_refused(folder, kManifestFile);
  }
}

TEST(Manifest, AFileBeyondTheFolderIsRefused) {
  for (const char* name : {"../state.safetensors", "/etc/passwd", "a/b", "a/", "..", ".", ""}) {
    Manifest manifest = small();
    manifest.files[0].name = name;
    expect_wrong(manifest);
  }
}

TEST(Manifest, IndicesAndRangesAreProved) {
  Manifest manifest = small();
  manifest.states[0].unit = 3;
  expect_wrong(manifest);
  manifest.states[0].unit = -1;
  expect_wrong(manifest);
  manifest = small();
  manifest.states[0].file = 1;
  expect_wrong(manifest);
  for (const shard::Range range :
       {shard::Range{.begin = 0, .end = 20}, {.begin = 5, .end = 5}, {.begin = -1, .end = 2}}) {
    manifest = small();
    manifest.states[0].range = range;
    expect_wrong(manifest);
  }
}

TEST(Manifest, AnEntryHasTheChecksumThatItsFileBringsOrThatOfItsBytes) {
  const TemporaryFolder folder;
  testing::Tensors tensors;
  tensors.add("a", {2}, {1, 2});
  tensors.write(folder.path() / "a.safetensors");
  const formats::SafetensorsFile file(folder.path() / "a.safetensors");
  EXPECT_EQ(entry_of(folder.path(), "a.safetensors").checksum, formats::content_checksum(file));
  (void)folder.write("a.json", "{}");
  const FileEntry entry = entry_of(folder.path(), "a.json");
  EXPECT_EQ(entry,
            (FileEntry{.name = "a.json", .bytes = 2, .checksum = formats::checksum_of("{}")}));
}

// While rank 0 lists the folder, others may still write: under the names of their temporary files,
// which are gone a moment later.
TEST(Manifest, ARankAnswersForItsOwnFilesAlone) {
  const TemporaryFolder folder;
  for (const char* name : {"config.json",
                           "trainer_state.json",
                           "state-00000-of-00002.safetensors",
                           "state-00001-of-00002.safetensors",
                           "state-00001-of-00002.safetensors.tmp123"}) {
    (void)folder.write(name, "x");
  }
  using Names = std::vector<std::string>;
  EXPECT_EQ(files_of_rank(folder.path(), 0, 2),
            (Names{"config.json", "state-00000-of-00002.safetensors", "trainer_state.json"}));
  EXPECT_EQ(files_of_rank(folder.path(), 1, 2), (Names{"state-00001-of-00002.safetensors"}));
}

}  // namespace
}  // namespace zeroth::checkpoint
