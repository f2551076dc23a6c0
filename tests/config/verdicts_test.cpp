// What `zeroth check` says of each real file, and which features decide: verdicts.txt.
#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "base/text.h"
#include "config/support.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace zeroth::config {
namespace {

const std::filesystem::path kList = kSourceDir / "tests" / "config" / "verdicts.txt";

constexpr auto kHead =
    "# Each file of ../shared/data/configs: accepted or refused by `zeroth check`, DeepSpeed's "
    "with\n"
    "# --world_size 1, and the features that decide: for an accepted one those that are planned, "
    "for a\n"
    "# refused one what is refused. Written by\n"
    "#   ZEROTH_WRITE_VERDICTS=1 BUILD/tests/zeroth_config_proofs_test "
    "--gtest_filter='Verdicts.*'\n";

std::string value_at(const Resolution& resolution, const Problem& problem) {
  for (const Written& written : resolution.account) {
    const bool here = std::find(problem.sources.begin(), problem.sources.end(), written.source) !=
                      problem.sources.end();
    if (here && written.outcome == Outcome::kRefused && !written.value.is_structured()) {
      return fmt::format("{} {}", written.path, shown(written.value));
    }
  }
  return fmt::format("{} ({})", problem.key, name_of(problem.kind));
}

std::string features(const Resolution& resolution) {
  std::vector<std::string> decisive;
  for (const Problem& problem : resolution.problems.all()) {
    decisive.push_back(problem.kind == ProblemKind::kFile ? "a file that is not there"
                                                          : value_at(resolution, problem));
  }
  if (resolution.problems.empty()) {
    for (const IdleSetting& planned : resolution.config.planned) {
      decisive.push_back(planned.key);
    }
  }
  return decisive.empty() ? "nothing that is planned" : join(decisive, "; ");
}

std::string verdict(const RealFile& file) {
  const Resolution resolution = check_file(file.dialect, file.path.string());
  return fmt::format("{} {}: {}",
                     file.name,
                     resolution.problems.empty() ? "accepted" : "refused",
                     features(resolution));
}

std::size_t accepted(const std::vector<std::string>& lines, const std::string& folder) {
  return static_cast<std::size_t>(
      std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
        return line.starts_with(folder) && has(line, " accepted: ");
      }));
}

TEST(Verdicts, NoneHasChanged) {
  const std::vector<RealFile> files = real_files();
  if (files.empty()) {
    GTEST_SKIP() << "needs ../shared/data";
  }
  std::vector<std::string> now;
  std::transform(files.begin(), files.end(), std::back_inserter(now), verdict);
  if (std::getenv("ZEROTH_WRITE_VERDICTS") != nullptr) {
    std::ofstream(kList) << kHead << join(now, "\n") << "\n";
  }
  const std::vector<std::string> written = lines_of(kList);
  ASSERT_EQ(written.size(), now.size());
  for (std::size_t i = 0; i < now.size(); ++i) {
    EXPECT_EQ(now[i], written[i]);
  }
  const std::size_t deepspeed = accepted(now, "deepspeed/");
  const std::size_t accelerate = accepted(now, "accelerate/");
  fmt::print("accepted: {} of DeepSpeed's files, {} of Accelerate's\n", deepspeed, accelerate);
  EXPECT_GE(deepspeed, 68U);  // those that use only what is here or planned, and hold together
}

}  // namespace
}  // namespace zeroth::config
