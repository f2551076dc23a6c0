#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "comm/test_support.h"
#include "process.h"
#include <gtest/gtest.h>
#include <unistd.h>

// Ranks as real processes: the test program again, told by its environment which rank of which
// scenario it is (child_test.cpp). It never forks; children start by exec.
namespace zeroth::comm::testing {

namespace fs = std::filesystem;
using zeroth::testing::Invocation;
using zeroth::testing::Outcome;
using zeroth::testing::TemporaryFolder;

inline constexpr const char* kVariable = "ZEROTH_COMM_TEST";

// What a child is to do, as one line of words.
struct Part {
  std::string scenario;
  std::string run_name;
  int rank = 0;
  int size = 1;
  double start_timeout_s = 20;
  std::string folder;

  [[nodiscard]] std::string text() const {
    return fmt::format(
        "{} {} {} {} {} {}", scenario, run_name, rank, size, start_timeout_s, folder);
  }
};

inline Part read_part(const std::string& text) {
  std::istringstream words(text);
  Part part;
  words >> part.scenario >> part.run_name >> part.rank >> part.size >> part.start_timeout_s >>
      part.folder;
  return part;
}

inline std::string unique_run_name() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return fmt::format("test-{}-{}", ::getpid(), now);
}

class Group {
 public:
  Group(std::string scenario, int size, double start_timeout_s = 20)
      : part_{.scenario = std::move(scenario),
              .run_name = unique_run_name(),
              .size = size,
              .start_timeout_s = start_timeout_s,
              .folder = folder_.path().string()} {}

  void start(int rank) {
    part_.rank = rank;
    const Invocation child{.arguments = {"/proc/self/exe"},
                           .environment = {fmt::format("{}={}", kVariable, part_.text())}};
    processes_[rank] = zeroth::testing::start(child, file("out", rank), file("err", rank));
  }

  void start_all() {
    for (int r = 0; r < part_.size; ++r) {
      start(r);
    }
  }

  [[nodiscard]] int wait(int rank) { return zeroth::testing::wait_for(processes_.at(rank)); }

  [[nodiscard]] pid_t pid(int rank) const { return processes_.at(rank); }

  [[nodiscard]] std::string errors(int rank) const {
    return read_file(file("err", rank), ErrorKind::kDisk);
  }

  [[nodiscard]] std::string result(int rank) const {
    return read_file(file("rank", rank), ErrorKind::kDisk);
  }

  void wait_for_result(int rank) const {
    while (!fs::exists(file("rank", rank))) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  [[nodiscard]] const Part& part() const { return part_; }

 private:
  [[nodiscard]] fs::path file(const std::string& kind, int rank) const {
    return folder_.path() / fmt::format("{}-{}", kind, rank);
  }

  TemporaryFolder folder_;
  Part part_;
  std::map<int, pid_t> processes_;
};

inline void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    EXPECT_NE(text.find(word), std::string::npos) << "'" << word << "' is not in: " << text;
  }
}

inline int named_entries() {
  int count = 0;
  for (const auto& entry : fs::directory_iterator("/dev/shm")) {
    count += entry.path().filename().string().starts_with("zeroth") ? 1 : 0;
  }
  return count;
}

inline std::vector<std::string> fingerprints_on_threads(int size) {
  std::vector<std::string> prints;
  for (const Bytes& bytes : exercise_on_threads(size)) {
    prints.push_back(fingerprint(bytes));
  }
  return prints;
}

}  // namespace zeroth::comm::testing
