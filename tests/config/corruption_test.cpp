// Real files with bytes changed, taken out, put in, cut off or doubled, as broken disks, editors
// and merges leave them.
#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <regex>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "config/account.h"
#include "config/leaf_reader.h"
#include "config/support.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace zeroth::config {
namespace {

constexpr int kNumCorruptions = 1000;

class Corruption {
 public:
  std::size_t below(std::size_t end) { return end == 0 ? 0 : generator_() % end; }

  void apply(std::string& text) {
    const std::size_t changes = 1 + below(3);
    for (std::size_t i = 0; i < changes; ++i) {
      change(text);
    }
  }

 private:
  char any_byte() { return static_cast<char>(below(256)); }

  // Bytes that mean something in JSON or YAML do more harm than others.
  char telling_byte() {
    constexpr std::string_view kBytes = "{}[]\",:#/*\\-& \n\t!%@`|>?'<0e.";
    return kBytes[below(kBytes.size())];
  }

  void change(std::string& text) {
    const std::size_t at = below(text.size());
    const std::size_t length = 1 + below(std::min<std::size_t>(text.size(), 40));
    switch (below(7)) {
      case 0:
        flip(text, at);
        break;
      case 1:
        text.erase(at, 1 + below(3));
        break;
      case 2:
        text.insert(at, 1, any_byte());
        break;
      case 3:
        text.insert(at, 1, telling_byte());
        break;
      case 4:
        text.resize(at);
        break;
      case 5:
        text.insert(at, text.substr(at, length));
        break;
      default:
        text.erase(at, length);
        break;
    }
  }

  void flip(std::string& text, std::size_t at) {
    if (!text.empty()) {
      text[at] = static_cast<char>(static_cast<unsigned char>(text[at]) ^ (1U << below(8)));
    }
  }

  std::mt19937_64 generator_{20240601};
};

// "x.json:3:7 is not valid ..."; a file with nothing in it has no position.
bool refused_with_position(const Problem& problem, const std::string& name) {
  static const std::regex position(R"(:[0-9]+:[0-9]+ is not valid (JSON|YAML): .)");
  const bool names_it = has(problem.message, name);
  return problem.kind == ProblemKind::kFile && names_it &&
         (std::regex_search(problem.message, position) || has(problem.message, "is empty"));
}

std::string tail_of(const std::string& text) {
  return text.size() < 600 ? text : "..." + text.substr(text.size() - 600);
}

// "whole": the file was refused as it is; else what was found of it.
std::string outcome_of(const RealFile& original, const std::string& text, bool json) {
  const std::string file = scratch_file(json ? "broken.json" : "broken.yaml", text);
  const std::string name = name_in_messages(file);
  const Resolution resolution = check_file(original.dialect, file);
  const std::vector<Written> account = account_of(resolution, file);
  for (const Problem& problem : resolution.problems.all()) {
    if (refused_with_position(problem, name)) {
      EXPECT_TRUE(account.empty()) << original.name << ": " << problem.message;
      return "refused whole";
    }
  }
  const Balance found = balance(json ? leaves_of_json(text) : leaves_of_yaml(text), account);
  EXPECT_TRUE(found.lost.empty()) << original.name << " lost " << join(found.lost, ", ")
                                  << messages(resolution.problems) << "\n"
                                  << tail_of(text);
  EXPECT_TRUE(found.invented.empty())
      << original.name << " has " << join(found.invented, ", ") << "\n"
      << tail_of(text);
  return resolution.problems.empty() ? "accepted" : "keys refused";
}

TEST(Corruption, NeverLosesALeafNorCrashes) {
  const std::vector<RealFile> files = real_files();
  if (files.empty()) {
    GTEST_SKIP() << "needs ../shared/data";
  }
  Corruption corruption;
  std::map<std::string, int> outcomes;
  std::chrono::duration<double> longest{};
  for (int i = 0; i < kNumCorruptions; ++i) {
    const RealFile& file = files[corruption.below(files.size())];
    std::string text = read_file(file.path, ErrorKind::kDisk);
    corruption.apply(text);
    const auto start = std::chrono::steady_clock::now();
    ASSERT_NO_THROW(++outcomes[outcome_of(file, text, file.path.extension() == ".json")])
        << "corruption " << i << " of " << file.name << "\n"
        << tail_of(text);
    longest =
        std::max<std::chrono::duration<double>>(longest, std::chrono::steady_clock::now() - start);
  }
  EXPECT_LT(longest.count(), 5);  // no hang; a few milliseconds in truth
  fmt::print("{} corruptions", kNumCorruptions);
  for (const auto& [outcome, count] : outcomes) {
    fmt::print(", {} {}", count, outcome);
  }
  fmt::print("; the longest took {:.0f} ms\n", longest.count() * 1000);
}

}  // namespace
}  // namespace zeroth::config
