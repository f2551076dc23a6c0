#pragma once

#include <string>
#include <vector>

#include "config/run_config.h"

// What can be checked in a tenth of a second, before any engine starts: that files exist and fit
// together. Each throws the Error that belongs to it.
namespace zeroth::cli {

// The model folder: config.json that can be read, weights in safetensors, a tokenizer.json; the
// adapter folder.
void check_model_folder(const config::ModelSettings& model);

// Every data file exists. A bare name is refused as a name of dataset_info.json, which is not read
// yet.
void check_data_files(const config::DataSettings& data);

// A model with a chat template must not be prompted in another format unless that was asked for.
void check_prompt_format(const config::RunConfig& config);

// More threads than any use can be meant for this machine would take minutes to start.
void check_threads(const config::RunConfig& config);

// What --resume_from_checkpoint means now, into `config.resume.folder`; what differs from the
// checkpoint's settings becomes notices, or is refused (kCheckpoint) where it needs --allow, and
// with --strict. The worker looks closer.
void choose_checkpoint(config::RunConfig& config);

// After a run that failed: the checkpoint that the next one can begin with, if there is one.
void tell_how_to_go_on(const config::RunConfig& config);

// The output folder is neither the model's nor the adapter's, and holds no results that may not be
// replaced: a run that goes on from a checkpoint in it has its own there, and where --resume auto
// finds none, records alone are of no use.
void check_output_folder(const config::RunConfig& config,
                         const std::vector<std::string>& more_results = {});

}  // namespace zeroth::cli
