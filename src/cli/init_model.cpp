#include "base/output_folder.h"
#include "cli/checks.h"
#include "cli/commands.h"
#include "cli/launcher.h"
#include "config/resolve.h"
#include "formats/model_config.h"
#include "shapes/families.h"

namespace zeroth::cli {

int run_init_model(Arguments arguments) {
  const config::RunConfig config =
      config::resolve(config::Command::kInitModel, arguments, config::process_environment());
  (void)shapes::read_model_config(config.model.model_config);
  check_output_folder(config);
  const OutputFolder output(config.output.output_dir);
  return run_workers(config);
}

}  // namespace zeroth::cli
