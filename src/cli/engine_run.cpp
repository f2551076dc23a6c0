#include "cli/engine_run.h"

#include <csignal>
#include <optional>

#include "base/error.h"
#include "base/output_folder.h"
#include "cli/checks.h"
#include "cli/launcher.h"
#include "cli/model_names.h"
#include "config/resolve.h"

namespace zeroth::cli {
namespace {

// Not by its settings or files, which the same command would meet again, and not when asked to.
bool failed_on_the_way(int code) {
  const auto is = [code](ErrorKind kind) { return code == exit_code(kind); };
  return is(ErrorKind::kCommunication) || is(ErrorKind::kMemory) || is(ErrorKind::kInternal);
}

}  // namespace

int run_with_engine(config::Command command, Arguments arguments) {
  // A request to save that comes before anybody can answer it is no reason to end.
  std::signal(SIGUSR1, [](int) {});
  config::RunConfig config = config::resolve(command, arguments, config::process_environment());
  check_threads(config);
  find_models(config);
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
  const int code = run_workers(config);
  if (command == config::Command::kTrain && speaks && failed_on_the_way(code)) {
    tell_how_to_go_on(config);
  }
  return code;
}

}  // namespace zeroth::cli
