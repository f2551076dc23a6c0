#pragma once

#include <string>
#include <vector>

#include "config/problems.h"
#include "config/run_config.h"
#include "config/schema.h"

// Rules between the settings of checkpoints, and what a checkpoint's settings mean for a run that
// goes on from it.
namespace zeroth::config {

void check_saving(const Values& values, Problems& problems);

// What the optimizer that is called `optim` keeps for each weight, in words. Where they are the
// same, one can go on with what another kept.
[[nodiscard]] std::string state_of_optimizer(const std::string& optim, bool has_momentum);

// What a checkpoint keeps of the settings: {key: value} of all that are in force and say something
// of the run itself.
[[nodiscard]] Json settings_to_keep(const RunConfig& config);

// A setting that is not what it was when the checkpoint was written; null: not in force.
struct ResumeDifference {
  std::string key;
  Json saved;
  Json now;
  std::string source;        // of the value in force
  bool needs_allow = false;  // it decides what the run means
};

// `kept`: what settings_to_keep() gave then.
[[nodiscard]] std::vector<ResumeDifference> differences_on_resume(const Json& kept,
                                                                  const RunConfig& config);

// "learning_rate: checkpoint 0.001, now 0.0005 (command line)"
[[nodiscard]] std::string text_of(const ResumeDifference& difference);

}  // namespace zeroth::config
