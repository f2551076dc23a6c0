#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/log.h"
#include "config/report.h"
#include "observe/progress.h"
#include "train/engine_options.h"
#include "train/evaluate.h"
#include "worker/commands.h"
#include "worker/inputs.h"
#include "worker/ranks.h"
#include "worker/tables.h"
#include <fmt/format.h>

namespace zeroth::worker {
namespace {

// The rows of eval_dataset; else those that train would set aside with the same seed; else all.
data::Dataset load_rows(const config::RunConfig& config, const Inputs& inputs) {
  const auto& names =
      config.data.eval_dataset.empty() ? config.data.dataset : config.data.eval_dataset;
  data::Dataset dataset = data::load_examples(sources_of(names), inputs.tokenizer, inputs.load);
  report_rows(config, inputs, dataset);
  if (config.data.val_size > 0) {
    return data::split_validation(dataset, config.data.val_size, config.seed);
  }
  return dataset;
}

}  // namespace

void run_eval(const config::RunConfig& config, const CommPtr& comm) {
  log::info(config::start_table(config));
  comm->note("reading the data");
  const Inputs inputs = open_inputs(config);
  const data::Dataset dataset = load_rows(config, inputs);
  log::info(data_line("evaluation", dataset));
  require_same_rows(*comm, "evaluation", dataset);
  comm->note("loading the model");
  LoadedModel loaded = load_model(config, inputs, /*trains=*/false, *comm);
  const auto engine = inference_engine(config, loaded, comm);
  comm->note("evaluation");
  const engine::Loss loss =
      train::evaluate(*engine, dataset, config.batch.eval_rows, inputs.pad_id);
  if (!std::isfinite(loss.mean())) {
    throw Error(ErrorKind::kModel,
                fmt::format("the loss is not finite: {}", why_not_finite(loaded.model)));
  }
  const auto rows = static_cast<std::int64_t>(dataset.examples.size());
  log::info(fmt::format("loss {:.6f}, perplexity {:.4f} over {} rows, {} target tokens",
                        loss.mean(),
                        std::exp(loss.mean()),
                        observe::grouped(rows),
                        observe::grouped(loss.weight)));
  if (config.json_output && comm->rank() == 0) {
    const Json json{{"loss", loss.mean()},
                    {"perplexity", std::exp(loss.mean())},
                    {"target_tokens", loss.weight},
                    {"rows", rows}};
    std::puts(json.dump().c_str());
  }
}

}  // namespace zeroth::worker
