#pragma once

#include <memory>

#include "comm/communicator.h"
#include "config/run_config.h"

// The commands that need an engine, one file each. They print for people on standard error and,
// with --format json, one object on standard output.
namespace zeroth::worker {

using CommPtr = std::shared_ptr<comm::Communicator>;

// Gives the exit code: 128 + signal where people stopped it.
[[nodiscard]] int run_train(const config::RunConfig& config, const CommPtr& comm);
void run_eval(const config::RunConfig& config, const CommPtr& comm);
void run_predict(const config::RunConfig& config, const CommPtr& comm);
void run_init_model(const config::RunConfig& config);
void run_bench(const config::RunConfig& config, const CommPtr& comm);
void run_export(const config::RunConfig& config);

}  // namespace zeroth::worker
