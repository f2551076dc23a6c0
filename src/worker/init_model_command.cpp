#include <cstdio>

#include "base/log.h"
#include "base/output_folder.h"
#include "observe/progress.h"
#include "shapes/families.h"
#include "train/engine_options.h"
#include "train/save_result.h"
#include "worker/commands.h"
#include "worker/inputs.h"
#include <fmt/format.h>

namespace zeroth::worker {

void run_init_model(const config::RunConfig& config) {
  const formats::ModelConfig model_config = shapes::read_model_config(config.model.model_config);
  const models::Model model = models::random_model(
      model_config,
      {.dtype = train::compute_dtype(config), .trainable = false, .seed = config.seed});
  remove_results(config.output.output_dir);
  const auto files =
      train::save_model(config.output.output_dir, model, train::compute_dtype(config));
  log::info(fmt::format("a random model of {} parameters (seed {})",
                        observe::grouped(model.num_parameters()),
                        config.seed));
  for (const auto& file : files) {
    log::info(fmt::format(
        "  {} ({})",
        file.string(),
        observe::bytes_text(static_cast<std::int64_t>(std::filesystem::file_size(file)))));
  }
  if (config.json_output) {
    std::puts(Json{{"parameters", model.num_parameters()}}.dump().c_str());
  }
}

}  // namespace zeroth::worker
