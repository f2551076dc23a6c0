#include <cstdio>

#include "base/log.h"
#include "base/output_folder.h"
#include "base/text.h"
#include "comm/gather_texts.h"
#include "config/report.h"
#include "generate/generate.h"
#include "observe/progress.h"
#include "observe/records.h"
#include "train/engine_options.h"
#include "worker/commands.h"
#include "worker/inputs.h"
#include "worker/ranks.h"
#include "worker/tables.h"
#include <fmt/format.h>

namespace zeroth::worker {
namespace {

namespace fs = std::filesystem;

generate::GenerateOptions generate_options(const config::RunConfig& config, const Inputs& inputs) {
  const config::GenerationSettings& settings = config.generation;
  generate::GenerateOptions options{.sampling = {.do_sample = settings.do_sample,
                                                 .temperature = settings.temperature,
                                                 .top_k = settings.top_k,
                                                 .top_p = settings.top_p,
                                                 .repetition_penalty = settings.repetition_penalty},
                                    .pad_id = inputs.pad_id,
                                    .max_new_tokens = settings.max_new_tokens,
                                    .max_length = settings.max_length,
                                    .max_positions = inputs.model_config.max_position_embeddings,
                                    .num_layers = inputs.model_config.num_hidden_layers,
                                    .seed = config.seed};
  // Every end token that any of the model's files names ends an answer.
  const auto defaults = formats::read_generation_defaults(config.model.model_name_or_path);
  options.end_ids.insert(defaults.eos_token_ids.begin(), defaults.eos_token_ids.end());
  options.end_ids.insert(inputs.model_config.eos_token_ids.begin(),
                         inputs.model_config.eos_token_ids.end());
  if (const auto end = inputs.tokenizer.eos_id()) {
    options.end_ids.insert(*end);
  }
  return options;
}

// A prompt without room for an answer is told before an earlier run's results go.
void check_rooms(const std::vector<data::Prompt>& prompts,
                 const generate::GenerateOptions& options) {
  for (const data::Prompt& prompt : prompts) {
    (void)generate::room_for(static_cast<std::int64_t>(prompt.ids.size()), options);
  }
}

struct Outcome {
  std::int64_t rows = 0;
  std::int64_t exact = 0;
  std::int64_t unfinished = 0;     // stopped by a limit, not by an end token
  std::int64_t at_models_end = 0;  // of those, stopped where the model's positions end

  [[nodiscard]] double exact_match() const {
    return rows == 0 ? 0.0 : static_cast<double>(exact) / static_cast<double>(rows);
  }
};

class Predictor {
 public:
  Predictor(const config::RunConfig& config, const Inputs& inputs, engine::Engine& engine)
      : config_(config),
        inputs_(inputs),
        engine_(engine),
        options_(generate_options(config, inputs)) {
    if (engine.comm().rank() == 0) {
      records_.emplace(fs::path(config.output.output_dir) / "generated_predictions.jsonl");
    }
  }

  // Ranks take batches in turn; after each round rank 0 writes the answers in the order of the
  // file.
  Outcome run(std::span<const data::Prompt> prompts) {
    const auto batch = static_cast<std::size_t>(config_.batch.eval_rows);
    const auto rank = static_cast<std::size_t>(engine_.comm().rank());
    const std::size_t round = batch * static_cast<std::size_t>(engine_.comm().size());
    for (std::size_t first = 0; first < prompts.size(); first += round) {
      const std::size_t begin = std::min(prompts.size(), first + rank * batch);
      const std::size_t count = std::min(batch, prompts.size() - begin);
      write(comm::gather_texts(
          engine_.comm(), "answers", predict(prompts.subspan(begin, count)).dump()));
    }
    return outcome_;
  }

 private:
  // One record for each prompt, with what the outcome counts beside it.
  Json predict(std::span<const data::Prompt> prompts) {
    std::vector<generate::Prompt> batch;
    for (const data::Prompt& prompt : prompts) {
      batch.push_back({.row = prompt.row, .ids = {prompt.ids.begin(), prompt.ids.end()}});
    }
    const std::vector<generate::Answer> answers = generate::generate(engine_, batch, options_);
    Json results = Json::array();
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      const auto tokens = static_cast<std::int64_t>(prompts[i].ids.size() + answers[i].ids.size());
      const std::vector<text::TokenId> ids(answers[i].ids.begin(), answers[i].ids.end());
      const std::string text =
          inputs_.tokenizer.decode(ids, config_.generation.skip_special_tokens);
      results.push_back(
          {{"record",
            {{"prompt", prompts[i].prompt}, {"predict", text}, {"label", prompts[i].label}}},
           {"exact", trim(text) == trim(prompts[i].label)},
           {"ended", answers[i].ended},
           {"at_models_end", !answers[i].ended && tokens >= options_.max_positions}});
    }
    return results;
  }

  void write(const std::vector<std::string>& results_of_ranks) {
    for (const std::string& results : results_of_ranks) {
      for (const Json& result :
           parse_json(results, "the answers of a rank", ErrorKind::kInternal)) {
        ++outcome_.rows;
        outcome_.exact += result["exact"].get<bool>() ? 1 : 0;
        outcome_.unfinished += result["ended"].get<bool>() ? 0 : 1;
        outcome_.at_models_end += result["at_models_end"].get<bool>() ? 1 : 0;
        if (records_) {
          records_->append(result["record"]);
        }
      }
    }
  }

  const config::RunConfig& config_;
  const Inputs& inputs_;
  engine::Engine& engine_;
  generate::GenerateOptions options_;
  std::optional<observe::Records> records_;  // on rank 0
  Outcome outcome_;
};

}  // namespace

void run_predict(const config::RunConfig& config, const CommPtr& comm) {
  log::info(config::start_table(config));
  comm->note("reading the data");
  const Inputs inputs = open_inputs(config);
  const auto& names =
      config.data.eval_dataset.empty() ? config.data.dataset : config.data.eval_dataset;
  data::RowCounts counts;
  const std::vector<data::Prompt> prompts =
      data::load_prompts(sources_of(names), inputs.tokenizer, inputs.load, &counts);
  report_counts(config, inputs, counts);
  check_rooms(prompts, generate_options(config, inputs));
  comm->note("loading the model");
  LoadedModel loaded = load_model(config, inputs, /*trains=*/false, *comm);
  const auto engine = inference_engine(config, loaded, comm);
  if (comm->rank() == 0) {
    remove_results(config.output.output_dir);
  }
  comm->note("prediction");
  const Outcome outcome = Predictor(config, inputs, *engine).run(prompts);
  log::info(fmt::format("exact match {:.2f} % ({} of {} rows, white space at the ends not counted)",
                        100.0 * outcome.exact_match(),
                        outcome.exact,
                        outcome.rows));
  if (outcome.unfinished > 0) {
    log::info(fmt::format("{} answers were stopped by a length limit before they ended",
                          outcome.unfinished) +
              (outcome.at_models_end == 0
                   ? ""
                   : fmt::format(", {} of them at the end of the model's {} positions",
                                 outcome.at_models_end,
                                 inputs.model_config.max_position_embeddings)));
  }
  log::info(fmt::format("files:\n  {}/generated_predictions.jsonl", config.output.output_dir));
  if (config.json_output && comm->rank() == 0) {
    const Json json{{"exact_match", outcome.exact_match()},
                    {"rows", outcome.rows},
                    {"unfinished", outcome.unfinished}};
    std::puts(json.dump().c_str());
  }
}

}  // namespace zeroth::worker
