#include <filesystem>

#include "cli/checks.h"
#include "cli/commands.h"
#include "cli/launcher.h"
#include "cli/model_names.h"
#include "config/resolve.h"
#include "formats/model_config.h"
#include "shapes/families.h"

namespace zeroth::cli {

int run_bench(Arguments arguments) {
  config::RunConfig config =
      config::resolve(config::Command::kBench, arguments, config::process_environment());
  check_threads(config);
  if (config.model.model_config.empty()) {
    find_models(config);
    config.model.model_config =
        std::filesystem::path(config.model.model_name_or_path) / "config.json";
  }
  (void)shapes::read_model_config(config.model.model_config);
  return run_workers(config);
}

}  // namespace zeroth::cli
