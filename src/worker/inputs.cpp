#include "worker/inputs.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "train/engine_options.h"
#include "worker/packing.h"
#include "worker/tables.h"
#include <fmt/format.h>

#include <ATen/ops/isfinite.h>

namespace zeroth::worker {

Inputs open_inputs(const config::RunConfig& config) {
  Inputs inputs = inputs::open_data_inputs(config);
  for (const std::string& remark : inputs.remarks) {
    log::info(remark);
  }
  return inputs;
}

std::vector<train::Companion> companions_of(const config::RunConfig& config, const Inputs& inputs) {
  return train::companions_of(
      config.model.model_name_or_path, inputs.tokenizer_folder, inputs.new_tokens);
}

void report_counts(const config::RunConfig& config,
                   const Inputs& inputs,
                   const data::RowCounts& counts) {
  const bool documents = config.command != config::Command::kPredict &&
                         config.data.stage == config::TrainStage::kPretrain;
  log::info(counts_line(counts, documents ? "documents" : "rows"));
  if (const auto bos = inputs.tokenizer.bos_id(); counts.bos_in_text > 0 && bos) {
    log::warn(
        fmt::format("{} rows spell \"{}\" in their text, and the tokenizer puts it in front "
                    "of each row as well\n  Take it out of the data, or it stands there twice.",
                    counts.bos_in_text,
                    inputs.tokenizer.token_of(*bos)));
  }
}

void report_rows(const config::RunConfig& config,
                 const Inputs& inputs,
                 const data::Dataset& dataset) {
  report_counts(config, inputs, dataset.counts);
  const std::int64_t positions = inputs.model_config.max_position_embeddings;
  const auto longer = std::count_if(
      dataset.examples.begin(), dataset.examples.end(), [&](const data::Example& example) {
        return static_cast<std::int64_t>(example.input_ids.size()) > positions;
      });
  if (longer > 0 && inputs.model_config.has_dynamic_rope()) {
    throw Error(ErrorKind::kNotSupported,
                fmt::format("{} rows are longer than the {} positions that the model was made for, "
                            "and its rope type \"dynamic\" beyond them is not supported: results "
                            "would depend on the longest row seen\n  Lower --cutoff_len to {}.",
                            longer,
                            positions,
                            positions));
  }
  if (longer > 0) {
    log::warn(
        fmt::format("{} rows are longer than the {} positions that the model was made for "
                    "(max_position_embeddings)\n  Lower --cutoff_len to {} to cut them.",
                    longer,
                    positions,
                    positions));
  }
}

std::string why_not_finite(const models::Model& model) {
  for (const auto& unit : model.units) {
    for (const models::Parameter& parameter : unit->parameters()) {
      const at::Tensor& value = parameter.value.defined() ? parameter.value : parameter.stored;
      if (value.defined() && !at::isfinite(value).all().item<bool>()) {
        return fmt::format(
            "{} holds infinity or NaN\n  Fetch the model or the adapter again, or go "
            "back to an earlier save.",
            parameter.name);
      }
    }
  }
  return "every parameter is finite: the numbers overflow on their way\n  Compute in a wider type: "
         "without --fp16, or with --bf16.";
}

std::unique_ptr<engine::Engine> inference_engine(const config::RunConfig& config,
                                                 LoadedModel& loaded,
                                                 std::shared_ptr<comm::Communicator> comm) {
  const at::ScalarType dtype = train::compute_dtype(config);
  const kernels::Packing packing = inference_packing(config, loaded.model, dtype, *comm);
  // Nothing is trainable, so the optimizer holds no state and is never asked.
  return std::make_unique<engine::Engine>(
      loaded.model.units,
      optim::make_sgd({}),
      engine::EngineOptions{
          .dtype = dtype, .share_frozen = config.model.share_frozen, .pack_weights = packing},
      std::move(comm),
      loaded.tally);
}

}  // namespace zeroth::worker
