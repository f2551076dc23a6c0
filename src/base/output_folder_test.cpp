#include "base/output_folder.h"

#include <csignal>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace zeroth {
namespace {

namespace fs = std::filesystem;

class OutputFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("zeroth_output_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
  }

  void TearDown() override { fs::remove_all(folder_); }

  // A process that inherited the lock, as a worker does; it lives until it is killed.
  static pid_t start_holder() {
    const pid_t child = ::fork();
    if (child == 0) {
      while (true) {
        ::pause();
      }
    }
    return child;
  }

  static void kill_and_wait(pid_t child) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }

  fs::path folder_;
};

TEST_F(OutputFolderTest, ALiveRunIsNamedAndRefused) {
  const OutputFolder held(folder_);
  try {
    const OutputFolder second(folder_);
    FAIL() << "two runs in one folder";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_NE(std::string(error.what()).find(std::to_string(::getpid())), std::string::npos)
        << error.what();
  }
}

TEST_F(OutputFolderTest, NothingIsLeftBehind) {
  { const OutputFolder held(folder_); }
  EXPECT_TRUE(fs::is_empty(folder_));
  const OutputFolder again(folder_);
}

TEST_F(OutputFolderTest, TheLockLivesAsLongAsAWorkerDoes) {
  const pid_t front = ::fork();
  if (front == 0) {  // a front that dies without cleaning up, leaving its worker
    new OutputFolder(folder_);
    const pid_t worker = start_holder();
    write_file_atomically(folder_ / "worker", std::to_string(worker));
    ::_exit(0);
  }
  ::waitpid(front, nullptr, 0);
  const auto worker =
      static_cast<pid_t>(std::stol(read_file(folder_ / "worker", ErrorKind::kDisk)));
  EXPECT_THROW(OutputFolder{folder_}, Error);
  ::kill(worker, SIGKILL);
  bool taken_over = false;
  for (int attempt = 0; attempt < 200 && !taken_over;
       ++attempt) {  // not our child: the kernel buries it
    try {
      const OutputFolder again(folder_);
      taken_over = true;
    } catch (const Error&) {
      ::usleep(10000);
    }
  }
  EXPECT_TRUE(taken_over);
}

TEST_F(OutputFolderTest, OnlyResultsAreCountedAndRemoved) {
  fs::create_directories(folder_ / "checkpoint-20");
  fs::create_directories(folder_ / "checkpoint-notes");
  for (const char* name :
       {"notes.txt", "model-00001-of-00002.safetensors", "metrics.jsonl", "tokenizer.json"}) {
    write_file_atomically(folder_ / name, "x");
  }
  EXPECT_THROW(refuse_existing_results(folder_, false), Error);
  refuse_existing_results(folder_, true);
  remove_results(folder_);
  EXPECT_TRUE(results_in(folder_).empty());
  EXPECT_TRUE(fs::exists(folder_ / "notes.txt"));
  EXPECT_TRUE(fs::exists(folder_ / "tokenizer.json"));
  EXPECT_TRUE(fs::exists(folder_ / "checkpoint-notes"));
  EXPECT_FALSE(fs::exists(folder_ / "checkpoint-20"));
  EXPECT_EQ(results_in(folder_, {"tokenizer.json"}).size(), 1U);
}

TEST_F(OutputFolderTest, AFileInItsPlaceIsADiskError) {
  write_file_atomically(folder_, "a file");
  try {
    const OutputFolder held(folder_);
    FAIL() << "locked a file as if it were a folder";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kDisk);
  }
}

}  // namespace
}  // namespace zeroth
