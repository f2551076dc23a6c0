#pragma once

#include <string>

#include "config/run_config.h"

namespace zeroth::cli {

// Puts the folders of models and adapters in the place of the ids that they are given by, where
// those are in Hugging Face's cache, with a notice for each. Names that are neither a folder nor an
// id stay as they are, for whoever opens them to refuse.
void find_models(config::RunConfig& config);

// The folder of an id that Hugging Face's cache holds; any other name as it is.
[[nodiscard]] std::string folder_of(const std::string& name);

}  // namespace zeroth::cli
