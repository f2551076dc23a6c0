#include "train/trainer_state.h"

#include <cmath>
#include <filesystem>

#include "base/file.h"

namespace zeroth::train {
namespace {

double epoch_of(const Progress& progress) {
  return progress.log_history.empty() ? 0.0 : progress.log_history.back().value("epoch", 0.0);
}

}  // namespace

Json trainer_state(const config::RunConfig& config, const Progress& progress) {
  const auto& best = progress.best_saved ? progress.best_saved : progress.best;
  const std::filesystem::path output = config.output.output_dir;
  const bool saved_best = best && !best->checkpoint.empty();
  return {
      {"best_metric", best ? Json(best->loss) : Json()},
      {"best_global_step", best ? Json(best->update) : Json()},
      {"best_model_checkpoint", saved_best ? Json((output / best->checkpoint).string()) : Json()},
      {"epoch", epoch_of(progress)},
      {"eval_steps", config.output.eval_steps},
      {"global_step", progress.engine.updates},
      {"is_hyper_param_search", false},
      {"is_local_process_zero", true},
      {"is_world_process_zero", true},
      {"log_history", progress.log_history},
      {"logging_steps", config.output.logging_steps},
      {"max_steps", config.schedule.max_steps},
      {"num_input_tokens_seen", progress.tokens},
      {"num_train_epochs", std::ceil(config.schedule.num_train_epochs)},
      {"save_steps", config.saving.steps},
      {"stateful_callbacks", Json::object()},
      {"total_flos", 0.0},
      {"train_batch_size", config.batch.micro_batch_rows},
      {"trial_name", nullptr},
      {"trial_params", nullptr}};
}

void write_trainer_state(const std::filesystem::path& folder,
                         const config::RunConfig& config,
                         const Progress& progress) {
  write_file_atomically(folder / kTrainerStateFile, trainer_state(config, progress).dump(2) + "\n");
}

}  // namespace zeroth::train
