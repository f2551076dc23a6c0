#include <cstdio>

#include "base/error.h"
#include "base/log.h"
#include "cli/commands.h"
#include "config/compare.h"
#include "config/report.h"
#include "config/resolve.h"
#include <fmt/format.h>

namespace zeroth::cli {
namespace {

constexpr int kRefused = 2;

std::string problem_list(const config::Problems& problems) {
  const std::size_t count = problems.all().size();
  std::string text = fmt::format("{} {} wrong", count, count == 1 ? "thing is" : "things are");
  for (const config::Problem& problem : problems.all()) {
    text += "\n  " + problem.message;
  }
  return text;
}

void print(const std::string& text) {
  std::fputs((text + "\n").c_str(), stdout);
}

void print_text(const config::Resolution& resolution,
                const std::vector<config::Difference>& differences) {
  print(config::start_table(resolution.config));
  if (!differences.empty()) {
    print(config::difference_lines(differences));
  }
  if (!resolution.problems.empty()) {
    print(problem_list(resolution.problems));
  } else {
    print("ok");
  }
}

}  // namespace

int run_check(Arguments arguments) {
  const config::Environment environment = config::process_environment();
  const config::Resolution resolution =
      config::resolve_all(config::Command::kCheck, arguments, environment);
  const std::vector<config::Difference> differences = config::compare(resolution, environment);
  if (resolution.config.json_output) {
    Json report = config::check_report(resolution);
    if (resolution.other_setup) {
      report["diff"] = config::to_json(differences);
    }
    print(report.dump());
  } else {
    print_text(resolution, differences);
  }
  return resolution.problems.empty() ? 0 : kRefused;
}

}  // namespace zeroth::cli
