#include "base/error.h"
#include "base/output_folder.h"
#include "cli/checks.h"
#include "cli/commands.h"
#include "cli/launcher.h"
#include "cli/model_names.h"
#include "config/resolve.h"

namespace zeroth::cli {

int run_export(Arguments arguments) {
  config::RunConfig config =
      config::resolve(config::Command::kExport, arguments, config::process_environment());
  if (!config.exporting.merge) {
    throw Error(ErrorKind::kNotSupported,
                "--merge false leaves nothing to do: export merges adapters into their model\n"
                "  Copy the folders as they are; other tools open them.");
  }
  if (config.model.adapter_name_or_path.empty()) {
    throw Error(ErrorKind::kConfig,
                "--adapter_name_or_path is required: export merges adapters into their model\n"
                "  Give one or more, with commas between them.");
  }
  find_models(config);
  check_model_folder(config.model);
  check_output_folder(config);
  const OutputFolder output(config.output.output_dir);
  return run_workers(config);
}

}  // namespace zeroth::cli
