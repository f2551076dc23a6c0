#include "worker/resume.h"

#include "base/log.h"
#include "base/timing.h"
#include "comm/gather_texts.h"
#include "formats/fingerprint.h"
#include <fmt/format.h>

namespace zeroth::worker {

train::Fingerprints fingerprints_of(const config::RunConfig& config,
                                    const Inputs& inputs,
                                    const data::Dataset& train) {
  const formats::ModelWeights weights(config.model.model_name_or_path);
  return {.model = formats::model_fingerprint(inputs.model_config, weights),
          .data = fmt::format("{:016x}-{}", train.fingerprint, train.examples.size())};
}

Resumed checkpoint_to_resume(const config::RunConfig& config,
                             comm::Communicator& comm,
                             const train::Fingerprints& fingerprints) {
  const std::string folder =
      comm::gather_texts(comm, "choice of the checkpoint", config.resume.folder)[0];
  if (folder.empty()) {
    if (!config.resume.from.empty()) {
      log::info(fmt::format("no checkpoint in {} to go on from: starting at update 0",
                            config.output.output_dir));
    }
    return std::nullopt;
  }
  comm.note("reading the checkpoint");
  Resumed resumed = train::open_checkpoint(folder, comm);
  train::require_same_inputs(*resumed, fingerprints, config);
  return resumed;
}

data::SamplerStart start_of(const Resumed& resumed) {
  return resumed ? data::SamplerStart{.update = resumed->progress.windows,
                                      .at = resumed->progress.rows_at}
                 : data::SamplerStart{};
}

void load_resumed(const train::OpenCheckpoint& checkpoint,
                  const train::TrainPlan& plan,
                  engine::Engine& engine) {
  engine.comm().note("loading the checkpoint");
  const Clock::time_point start = Clock::now();
  train::load_checkpoint(checkpoint, engine);
  log::info(fmt::format("going on from {} after update {}, epoch {} row {} (loaded in {:.2f} s)",
                        checkpoint.folder.string(),
                        checkpoint.progress.engine.updates,
                        checkpoint.progress.rows_at.epoch,
                        checkpoint.progress.rows_at.row,
                        seconds_since(start)));
  if (plan.start.update >= plan.total_updates) {
    log::warn(
        fmt::format("the checkpoint has come through {} windows, and this run is to have {}: "
                    "nothing is left to train (--max_steps, --num_train_epochs)",
                    plan.start.update,
                    plan.total_updates));
  }
}

}  // namespace zeroth::worker
