#include <cstdio>
#include <optional>

#include "base/error.h"
#include "base/printing.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/inspect_compare.h"
#include "cli/inspect_page.h"
#include "cli/inspect_read.h"
#include "cli/model_names.h"

#include "config/resolve.h"
#include <fmt/format.h>

namespace zeroth::cli {
namespace {

void print_text(const Inspected& found,
                const std::optional<Inspected>& other,
                const std::optional<Comparison>& comparison) {
  const std::string text =
      other && comparison ? comparison_page(*comparison, found, *other) : inspect_page(found);
  std::fputs(visible(text).c_str(), stdout);
}

void print_json(const Inspected& found,
                const std::optional<Inspected>& other,
                const std::optional<Comparison>& comparison) {
  Json json = to_json(found);
  if (other && comparison) {
    json["other"] = to_json(*other);
    json["diff"] = to_json(*comparison);
  }
  std::fputs((json_text(json) + "\n").c_str(), stdout);
}

// After everything that could be read was shown.
void refuse_damaged(const Inspected& found) {
  if (found.is_sound()) {
    return;
  }
  std::vector<std::string> faults = found.faults;
  for (const InspectedFile& file : found.files) {
    if (!file.is_sound()) {
      faults.push_back(fmt::format("{}: {}", file.name, file.fault));
    }
  }
  const bool checkpoint = found.kind == Holding::kCheckpoint;
  throw Error(checkpoint ? ErrorKind::kCheckpoint : ErrorKind::kFormat,
              fmt::format("{} is damaged\n  {}\n  {}",
                          found.path.string(),
                          join(faults, "\n  "),
                          checkpoint ? "Go on from another checkpoint."
                                     : "Copy it again from where it is whole."));
}

}  // namespace

int run_inspect(Arguments arguments) {
  if (arguments.empty() || arguments.front().starts_with("--")) {
    throw Error(ErrorKind::kUsage,
                "zeroth inspect takes a path first\n  E.g. zeroth inspect out/checkpoint-20");
  }
  const config::Resolution resolution =
      config::resolve_all(config::Command::kInspect, arguments.subspan(1), {});
  resolution.problems.throw_if_any();
  const Inspected found = inspect(folder_of(arguments.front()));
  std::optional<Inspected> other;
  std::optional<Comparison> comparison;
  if (resolution.other_setup) {
    other = inspect(folder_of(*resolution.other_setup));
    comparison = compare(found, *other);
  }
  if (resolution.config.json_output) {
    print_json(found, other, comparison);
  } else {
    print_text(found, other, comparison);
  }
  refuse_damaged(found);
  if (other) {
    refuse_damaged(*other);
  }
  return 0;
}

}  // namespace zeroth::cli
