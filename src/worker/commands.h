#pragma once

#include "config/run_config.h"

// The commands that need an engine, one file each. They print for people on standard error and,
// with --format json, one object on standard output.
namespace zeroth::worker {

void run_train(const config::RunConfig& config);
void run_eval(const config::RunConfig& config);
void run_predict(const config::RunConfig& config);
void run_init_model(const config::RunConfig& config);

}  // namespace zeroth::worker
