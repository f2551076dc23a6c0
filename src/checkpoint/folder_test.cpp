#include "checkpoint/folder.h"

#include <algorithm>

#include "base/file.h"
#include "checkpoint/manifest.h"
#include "formats/damage.h"
#include "formats/test_files.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace zeroth::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;

class CheckpointFolder : public ::testing::Test {
 protected:
  [[nodiscard]] const fs::path& out() const { return folder_.path(); }

  [[nodiscard]] fs::path at(std::int64_t update) const { return out() / folder_name(update); }

  // A whole one that lists no files.
  void save(std::int64_t update) const {
    write_manifest(begin_writing(out(), update), {.update = update});
    (void)publish(out(), update);
  }

  void save_all(std::initializer_list<std::int64_t> updates) const {
    for (const std::int64_t update : updates) {
      save(update);
    }
  }

  void write(const std::string& name, const std::string& text) const {
    (void)folder_.write(name, text);
  }

  void say_latest(std::int64_t update) const { write(kLatestFile, folder_name(update) + "\n"); }

  void break_one(std::int64_t update) const { fs::remove(at(update) / kManifestFile); }

  [[nodiscard]] std::string latest() const {
    return read_file(out() / kLatestFile, ErrorKind::kCheckpoint);
  }

  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const fs::path& path : testing::files_in(out())) {
      names.push_back(path.filename().string());
    }
    return names;
  }

  void refused(const std::string& from, const std::vector<std::string>& parts) const {
    expect_error([&] { (void)choose(from, out()); }, ErrorKind::kCheckpoint, parts);
  }

 private:
  testing::TemporaryFolder folder_;
};

using Names = std::vector<std::string>;

TEST_F(CheckpointFolder, OneThatIsPublishedIsTheLatest) {
  save(3);
  EXPECT_EQ(names(), (Names{"checkpoint-3", "latest"}));
  EXPECT_EQ(latest(), "checkpoint-3\n");
  EXPECT_EQ(fault_of(at(3)), "");
  EXPECT_EQ(read_manifest(at(3)).update, 3);
}

TEST_F(CheckpointFolder, UntilThenNobodySeesIt) {
  save(3);
  write_manifest(begin_writing(out(), 6), {.update = 6});
  EXPECT_EQ(latest(), "checkpoint-3\n");
  EXPECT_FALSE(fs::exists(at(6)));
  EXPECT_EQ(choose("latest", out()).folder, at(3));
}

TEST_F(CheckpointFolder, OneOfTheSameNameIsReplaced) {
  save(3);
  write("checkpoint-3/of_the_old_one", "x");
  save(3);
  EXPECT_EQ(names(), (Names{"checkpoint-3", "latest"}));
  EXPECT_FALSE(fs::exists(at(3) / "of_the_old_one"));
  EXPECT_EQ(fault_of(at(3)), "");
}

TEST_F(CheckpointFolder, WritingBeginsInAnEmptyFolder) {
  const fs::path partial = begin_writing(out(), 3);
  write("checkpoint-3.partial/half", "x");
  EXPECT_EQ(begin_writing(out(), 3), partial);
  EXPECT_TRUE(fs::is_empty(partial));
}

TEST_F(CheckpointFolder, WhatAStoppedProcessLeftGoes) {
  save(3);
  (void)begin_writing(out(), 6);
  for (const char* name :
       {"checkpoint-1.removed", "checkpoint-x.partial", "mine.partial", "checkpoint-"}) {
    fs::create_directories(out() / name);
  }
  remove_leftovers(out());
  EXPECT_EQ(
      names(),
      (Names{"checkpoint-", "checkpoint-3", "checkpoint-x.partial", "latest", "mine.partial"}));
}

TEST_F(CheckpointFolder, FaultsAreNamed) {
  write("checkpoint-1", "a file of this name is none");
  const fs::path partial = begin_writing(out(), 3);
  write("checkpoint-3.partial/state", "12345");
  Manifest manifest{.update = 3};
  manifest.files = {{.name = "state", .bytes = 6, .checksum = "0"},
                    {.name = "gone", .bytes = 1, .checksum = "0"}};
  write_manifest(partial, manifest);
  (void)publish(out(), 3);
  EXPECT_EQ(fault_of(at(3)),
            "state has 5 bytes instead of 6, gone is missing; expected state, gone; found state");
  write("checkpoint-3/checkpoint.json", "{}");
  EXPECT_NE(fault_of(at(3)).find("is not a checkpoint's list of contents"), std::string::npos);
  break_one(3);
  EXPECT_EQ(fault_of(at(3)), "checkpoint.json is missing, which is written last");
  const std::vector<Found> found = checkpoints_in(out());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].update, 3);
}

TEST_F(CheckpointFolder, TheyAreListedByUpdateAndNotByName) {
  save_all({10, 9, 100});
  (void)begin_writing(out(), 50);
  std::vector<std::int64_t> updates;
  for (const Found& one : checkpoints_in(out())) {
    updates.push_back(one.update);
    EXPECT_EQ(one.fault, one.update == 50 ? "the process that wrote it was stopped" : "");
  }
  EXPECT_EQ(updates, (std::vector<std::int64_t>{9, 10, 50, 100}));
  EXPECT_TRUE(checkpoints_in(out() / "nowhere").empty());
}

TEST_F(CheckpointFolder, NothingAskedForNothingChosen) {
  save(3);
  EXPECT_TRUE(choose("", out()).folder.empty());
}

TEST_F(CheckpointFolder, LatestIsTheOneThatTheFileNames) {
  save_all({3, 6});
  EXPECT_EQ(choose("latest", out()).folder, at(6));
  EXPECT_TRUE(choose("latest", out()).remarks.empty());
  say_latest(3);
  const Choice choice = choose("latest", out());
  EXPECT_EQ(choice.folder, at(3));
  EXPECT_EQ(choice.remarks, (Names{"checkpoint-6 is passed over: latest names checkpoint-3"}));
}

// Case K13.
TEST_F(CheckpointFolder, AHalfWrittenOneIsPassedOver) {
  save(3);
  (void)begin_writing(out(), 6);
  fs::create_directories(at(9));
  for (const char* from : {"latest", "auto"}) {
    const Choice choice = choose(from, out());
    EXPECT_EQ(choice.folder, at(3));
    EXPECT_EQ(
        choice.remarks,
        (Names{"checkpoint-6.partial is passed over: incomplete, the process that wrote it was "
               "stopped",
               "checkpoint-9 is passed over: incomplete, checkpoint.json is missing, which is "
               "written last"}));
  }
}

// Case K12.
TEST_F(CheckpointFolder, WithoutTheWordLatestWhatThereIsIsNamed) {
  refused(
      "latest",
      {"no \"latest\" in " + out().string(), "found: no checkpoint", "auto to start at update 0"});
  save_all({3, 6});
  break_one(6);
  fs::remove(out() / kLatestFile);
  refused("latest",
          {"no \"latest\" in",
           "found: checkpoint-3, checkpoint-6 (incomplete)",
           "--resume_from_checkpoint " + at(3).string()});
}

TEST_F(CheckpointFolder, AWordLatestThatLeadsNowhereIsTold) {
  save_all({3, 6});
  say_latest(9);
  refused("latest",
          {"names checkpoint-9, which is not there",
           "found: checkpoint-3, checkpoint-6",
           "--resume_from_checkpoint " + at(6).string()});
  say_latest(6);
  break_one(6);
  refused("latest",
          {"names checkpoint-6, which is incomplete: checkpoint.json is missing",
           "--resume_from_checkpoint " + at(3).string()});
  write(kLatestFile, "../\x1b[31m\n");
  refused("latest", {"names ../?[31m, which is not there"});
}

TEST_F(CheckpointFolder, AutoTakesTheNewestCompleteOneOrNone) {
  EXPECT_TRUE(choose("auto", out()).folder.empty());
  EXPECT_TRUE(choose("auto", out() / "nowhere").folder.empty());
  save_all({3, 6, 9});
  say_latest(6);
  EXPECT_EQ(choose("auto", out()).folder, at(6));
  fs::remove(out() / kLatestFile);
  EXPECT_EQ(choose("auto", out()).folder, at(9));
  break_one(9);
  EXPECT_EQ(choose("auto", out()).folder, at(6));
  EXPECT_EQ(choose("auto", out()).remarks.size(), 1U);
  say_latest(9);
  EXPECT_EQ(choose("auto", out()).folder, at(6));
}

TEST_F(CheckpointFolder, AFolderIsTakenAsItIsGiven) {
  save_all({3, 6});
  const Choice choice = choose(at(3).string(), out() / "elsewhere");
  EXPECT_EQ(choice.folder, at(3));
  EXPECT_TRUE(choice.remarks.empty());
}

TEST_F(CheckpointFolder, AFolderThatIsNoCheckpointIsRefusedWithWhatItIs) {
  save_all({3, 6});
  refused(at(9).string(), {"there is no checkpoint folder " + at(9).string(), "latest"});
  refused(out().string(),
          {"is not a checkpoint, but holds checkpoint-3, checkpoint-6",
           "--resume_from_checkpoint " + at(6).string()});
  break_one(3);
  refused(at(3).string(),
          {"nothing can go on from " + at(3).string(),
           "checkpoint.json is missing",
           "--adapter_name_or_path"});
}

TEST_F(CheckpointFolder, TheOldestBeyondTheLimitGo) {
  save_all({1, 2, 10});
  rotate(out(), 0, {});
  rotate(out(), 3, {});
  EXPECT_EQ(checkpoints_in(out()).size(), 3U);
  rotate(out(), 2, {});
  EXPECT_EQ(names(), (Names{"checkpoint-10", "checkpoint-2", "latest"}));
  rotate(out(), 1, {});
  EXPECT_EQ(names(), (Names{"checkpoint-10", "latest"}));
}

TEST_F(CheckpointFolder, NeitherTheLatestNorOneThatIsKeptGoes) {
  save_all({1, 2, 3, 4});
  say_latest(2);
  rotate(out(), 1, {at(1)});
  EXPECT_EQ(names(), (Names{"checkpoint-1", "checkpoint-2", "latest"}));
}

// A run that went back to update 2 leaves newer ones of its former life: they are the first to go.
TEST_F(CheckpointFolder, WhatIsNewerThanTheLatestGoesFirst) {
  save_all({1, 2, 8, 9});
  say_latest(2);
  rotate(out(), 3, {});
  EXPECT_EQ(names(), (Names{"checkpoint-1", "checkpoint-2", "checkpoint-9", "latest"}));
  rotate(out(), 2, {});
  EXPECT_EQ(names(), (Names{"checkpoint-1", "checkpoint-2", "latest"}));
}

}  // namespace
}  // namespace zeroth::checkpoint
