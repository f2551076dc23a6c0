#include "cli/engine_run.h"

#include <csignal>
#include <optional>

#include "base/output_folder.h"
#include "cli/checks.h"
#include "cli/launcher.h"
#include "config/resolve.h"

namespace zeroth::cli {

int run_with_engine(config::Command command, Arguments arguments) {
  // A request to save that comes before anybody can answer it is no reason to end.
  std::signal(SIGUSR1, [](int) {});
  config::RunConfig config = config::resolve(command, arguments, config::process_environment());
  check_threads(config);
  check_model_folder(config.model);
  check_data_files(config.data);
  check_prompt_format(config);
  choose_checkpoint(config);
  std::optional<OutputFolder> output;
  const bool speaks =
      config.launch.rank == 0;  // under a launcher every rank comes here; one owns the folder
  if (speaks && !config.output.output_dir.empty()) {
    check_output_folder(config);
    output.emplace(config.output.output_dir);
  }
  return run_workers(config);
}

}  // namespace zeroth::cli
