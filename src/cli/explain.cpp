#include "config/explain.h"

#include <cstdio>

#include "base/error.h"
#include "base/printing.h"
#include "base/text.h"
#include "cli/commands.h"
#include "config/resolve.h"
#include <fmt/format.h>

namespace zeroth::cli {

int run_explain(Arguments arguments) {
  if (arguments.empty() || arguments.front().starts_with("--")) {
    throw Error(
        ErrorKind::kUsage,
        "zeroth explain takes a key first\n  E.g. zeroth explain gradient_accumulation_steps");
  }
  const config::Declaration& key = config::key_to_explain(arguments.front());
  const config::Resolution resolution = config::resolve_all(
      config::Command::kExplain, arguments.subspan(1), config::process_environment());
  resolution.problems.throw_if_any();  // what is wrong with the rest would make it a wrong answer
  const std::string text = resolution.config.json_output
                               ? json_text(config::explanation_json(key, resolution))
                               : config::explanation(key, resolution);
  std::fputs(visible(text + "\n").c_str(), stdout);
  return 0;
}

}  // namespace zeroth::cli
