#pragma once

#include <filesystem>
#include <vector>

#include "config/run_config.h"
#include "data/example.h"
#include "models/model.h"
#include "train/plan.h"
#include "train/trainer.h"

// The words at the start and the end of a run.
namespace zeroth::worker {

[[nodiscard]] std::string model_line(const models::Model& model, const config::RunConfig& config);
[[nodiscard]] std::string lora_line(const models::Model& model);
[[nodiscard]] std::string data_line(const std::string& what, const data::Dataset& dataset);
// `what` was read: "rows", or "documents" of plain text.
[[nodiscard]] std::string counts_line(const data::RowCounts& counts, const std::string& what);
[[nodiscard]] std::string plan_lines(const config::RunConfig& config, const train::TrainPlan& plan);
[[nodiscard]] std::string finish_table(const config::RunConfig& config,
                                       const train::TrainSummary& summary,
                                       const std::vector<std::filesystem::path>& files);
// For a run that a signal ended.
[[nodiscard]] std::string stop_table(const config::RunConfig& config,
                                     const train::TrainSummary& summary);
[[nodiscard]] const char* signal_name(int signal) noexcept;  // SIGINT or SIGTERM

}  // namespace zeroth::worker
