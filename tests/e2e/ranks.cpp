#include "e2e/ranks.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>

#include <fmt/format.h>
#include <unistd.h>

namespace zeroth::e2e {
namespace {

namespace fs = std::filesystem;

std::set<std::string> files_in_shared_memory() {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator("/dev/shm")) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

// Ids of living processes with this word in their environment, this one aside.
Words processes_with(const std::string& mark) {
  Words found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string id = entry.path().filename().string();
    if (id.find_first_not_of("0123456789") != std::string::npos) {
      continue;
    }
    std::ifstream file(entry.path() / "environ", std::ios::binary);
    const std::string environment{std::istreambuf_iterator<char>(file), {}};
    if (environment.find(mark) != std::string::npos) {
      found.push_back(id);
    }
  }
  return found;
}

// mpirun takes a moment to end after its ranks.
bool soon_empty(const std::function<bool()>& is_empty) {
  for (int i = 0; i < 1000; ++i) {
    if (is_empty()) {
      return true;
    }
    ::usleep(10'000);
  }
  return false;
}

}  // namespace

Words cut(int ranks, int micro, int accumulation, int stage) {
  return {"--ranks",
          std::to_string(ranks),
          "--per_device_train_batch_size",
          std::to_string(micro),
          "--gradient_accumulation_steps",
          std::to_string(accumulation),
          "--zero_stage",
          std::to_string(stage)};
}

void RankTest::SetUp() {
  EndToEnd::SetUp();
  mark_ = fmt::format("ZEROTH_TEST_MARK={}-{}", ::getpid(), folder_.path().filename().string());
  shared_files_ = files_in_shared_memory();
}

void RankTest::TearDown() {
  EXPECT_TRUE(soon_empty([&] { return processes_with(mark_).empty(); }))
      << "still running: " << processes_with(mark_).size() << " processes";
  // Runs beside this one may have files there too, which go when they end.
  std::set<std::string> left = files_in_shared_memory();
  std::erase_if(left, [&](const std::string& name) { return shared_files_.contains(name); });
  EXPECT_TRUE(soon_empty([&] {
    const std::set<std::string> now = files_in_shared_memory();
    return std::none_of(
        left.begin(), left.end(), [&](const auto& name) { return now.contains(name); });
  })) << "left in /dev/shm: "
      << *left.begin();
}

testing::Invocation RankTest::invocation(const Words& words) const {
  testing::Invocation invocation = EndToEnd::invocation(words);
  invocation.environment.push_back(mark_);
  return invocation;
}

testing::Outcome RankTest::zeroth(const Words& words, const Words& environment) const {
  testing::Invocation invocation = this->invocation(words);
  invocation.environment = joined(environment, invocation.environment);
  return testing::run(invocation);
}

testing::Outcome RankTest::good(const Words& words) const {
  testing::Outcome outcome = zeroth(words);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  return outcome;
}

Tensors RankTest::weights_of(const std::string& out, const Words& words) const {
  (void)good(train(out, joined(words, {"--finetuning_type", "full"})));
  return tensors_of(path(out) / "model.safetensors");
}

bool RankTest::has_mpirun() {
  return testing::run({.arguments = {"/usr/bin/env", "mpirun", "--version"}}).exit_code == 0;
}

testing::Invocation RankTest::under_mpirun(const Words& hosts, const Words& words) const {
  testing::Invocation invocation = this->invocation(words);
  Words line{
      "/usr/bin/env", "mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"};
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    const Words one{"-n", "1", "/usr/bin/env", "ZEROTH_HOST_ID=" + hosts[rank]};
    line = joined(joined(rank == 0 ? line : joined(line, {":"}), one), invocation.arguments);
  }
  invocation.arguments = line;
  invocation.environment = joined(invocation.environment, testing::mpirun_environment());
  return invocation;
}

}  // namespace zeroth::e2e
