#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "data/load.h"
#include "engine/engine.h"
#include "formats/adapter.h"
#include "inputs/data_inputs.h"
#include "models/base_weights.h"
#include "models/model.h"
#include "train/companions.h"

// What train, eval and predict read before they start. Data is read before weights: a bad row is
// told early.
namespace zeroth::worker {

using inputs::sources_of;
using Inputs = inputs::DataInputs;

// What became of added tokens is told.
[[nodiscard]] Inputs open_inputs(const config::RunConfig& config);

// What goes beside a result.
[[nodiscard]] std::vector<train::Companion> companions_of(const config::RunConfig& config,
                                                          const Inputs& inputs);

// What was read, and what the user should know of it.
void report_counts(const config::RunConfig& config,
                   const Inputs& inputs,
                   const data::RowCounts& counts);
void report_rows(const config::RunConfig& config,
                 const Inputs& inputs,
                 const data::Dataset& dataset);

// The model with its adapters, fresh or read, as the run asks for: of several that are given all
// but the last are merged into the base. `trains` false freezes everything. Files that bring a
// checksum are read whole and compared with it. Collective.
struct LoadedModel {
  models::Model model;
  std::optional<formats::AdapterConfig> adapter;  // what would be saved
  std::shared_ptr<memory::Tally> tally;           // counts the weights that do not train
};

[[nodiscard]] LoadedModel load_model(const config::RunConfig& config,
                                     const Inputs& inputs,
                                     bool trains,
                                     comm::Communicator& comm);

// What a result that is not finite comes from: the first parameter that is not finite itself, or
// that there is none.
[[nodiscard]] std::string why_not_finite(const models::Model& model);

// A base and at least one adapter for it, all checked.
struct OpenedBase {
  std::shared_ptr<const formats::ModelWeights> files;
  std::vector<models::AdapterToMerge> adapters;  // as given
  formats::AdapterConfig last;                   // of the last one
};

[[nodiscard]] OpenedBase open_base_and_adapters(const config::RunConfig& config,
                                                const Inputs& inputs);

// An engine that only runs forwards, on each rank of `comm` by itself.
[[nodiscard]] std::unique_ptr<engine::Engine> inference_engine(
    const config::RunConfig& config, LoadedModel& loaded, std::shared_ptr<comm::Communicator> comm);

}  // namespace zeroth::worker
