#include "config/keys/forms.h"

// Transformers' options of a run as a whole: what it does, saves, logs and evaluates.
namespace zeroth::config {
namespace {

Declaration predicting(Declaration key) {
  key.without_effect = [](const Values& values) {
    return values.command() == Command::kPredict
               ? std::optional<std::string>("zeroth predict predicts")
               : std::nullopt;
  };
  return key;
}

Declarations action_keys() {
  return {
      harmless("do_train", flag(false), "train the model", "the command says it already"),
      harmless("do_eval",
               flag(false),
               "evaluate the model",
               "train evaluates wherever there are rows for it; zeroth eval does nothing else"),
      predicting(refused("do_predict",
                         flag(false),
                         "predict answers",
                         "do_predict is a key of zeroth predict: use that command")),
      harmless("predict_with_generate",
               flag(false),
               "generate whole answers while predicting",
               "zeroth predict always generates"),
  };
}

// DeepSpeed has a key of the same name and meaning.
Declaration in_both(Declaration key) {
  key.deepspeed = {key.name};
  return key;
}

Declarations logging_keys() {
  const std::vector<std::string> levels{
      "passive", "detail", "debug", "info", "warning", "error", "critical"};
  return {
      off_too({Json::array()},
              planned("report_to",
                      names(Json::array({"none"})),
                      "where else to record the run: tensorboard, ...",
                      "metrics.jsonl is written; other records are not built yet")),
      harmless(
          "run_name", text(), "a name for the run's records", "the output folder names the run"),
      harmless("project",
               text("huggingface"),
               "the tracking service's project",
               "no tracking service is told of the run"),
      harmless("trackio_space_id",
               text("trackio"),
               "where Trackio shows the run",
               "nothing is sent to Trackio"),
      planned("logging_dir",
              text(),
              "folder for TensorBoard's events",
              "TensorBoard events are not written yet; metrics.jsonl is"),
      spelled({{"false", "no"}},
              harmless("logging_strategy",
                       one_of({"no", "steps", "epoch"}, "steps"),
                       "when to log",
                       "a progress line comes every logging_steps updates; metrics.jsonl has every "
                       "update")),
      harmless("logging_first_step",
               flag(false),
               "log the first update",
               "metrics.jsonl has the first update like all others"),
      harmless("logging_nan_inf_filter",
               flag(true),
               "leave NaN and inf out of the logged loss",
               "a loss is recorded as it is"),
      harmless("log_on_each_node",
               flag(true),
               "log once per host",
               "one rank of the whole run writes the log"),
      spelled({{"true", "all"}, {"false", "no"}},
              harmless("include_num_input_tokens_seen",
                       one_of({"no", "all", "non_padding"}, "no"),
                       "count the tokens",
                       "metrics.jsonl always has the tokens")),
      harmless("include_tokens_per_second",
               flag(false),
               "log tokens per second",
               "metrics.jsonl always has tokens_per_second"),
      in_both(planned(
          "log_level", one_of(levels, "passive"), "how much is said", "there is one level so far")),
      harmless("log_level_replica",
               one_of(levels, "warning"),
               "how much the other ranks say",
               "the other ranks say nothing unless they fail"),
      harmless("disable_tqdm",
               flag(nullptr),
               "no progress bar",
               "the progress line is plain where the output is not a terminal"),
      harmless("skip_memory_metrics",
               flag(true),
               "do not measure memory",
               "memory is counted as it is taken, which costs nothing"),
      off_too({false, true, ""},
              at({"debug"},
                 planned("debug",
                         anything(),
                         "underflow_overflow: name the place where numbers leave their range",
                         "collectives are always checked; the place of an overflow is not named "
                         "yet"))),
  };
}

Declarations evaluation_keys() {
  return {
      refused("eval_delay",
              number(kNotNegative, 0),
              "epochs or updates before the first evaluation",
              "evaluation starts with the first eval_steps: leave it out"),
      refused("eval_on_start",
              flag(false),
              "evaluate before the first update",
              "use zeroth eval for the loss before training"),
      harmless("eval_accumulation_steps",
               whole(kAtLeastOne),
               "evaluation batches held on the device",
               "the loss is summed batch by batch, no outputs are held"),
      harmless("batch_eval_metrics",
               flag(false),
               "compute metrics batch by batch",
               "the loss is always summed batch by batch"),
      harmless("prediction_loss_only",
               flag(false),
               "compute nothing but the loss",
               "evaluation computes the loss alone"),
      harmless("eval_do_concat_batches",
               flag(true),
               "join the outputs of all batches",
               "evaluation keeps no outputs that could be joined"),
      harmless("eval_use_gather_object",
               flag(false),
               "gather nested objects from all ranks",
               "ranks gather two numbers: loss and tokens"),
      harmless("include_for_metrics",
               names(),
               "what a metrics function of the user's gets",
               "there is no metrics function"),
      harmless("include_inputs_for_metrics",
               flag(false),
               "give the inputs to a metrics function",
               "no metrics function asks for inputs"),
      harmless("label_names",
               names(),
               "columns that hold labels",
               "labels come from the rows' own format"),
  };
}

Declarations hub_keys() {
  return {
      refused("push_to_hub",
              flag(false),
              "send the result to the Hugging Face hub",
              "nothing is sent anywhere: upload output_dir yourself, it is a complete folder"),
      harmless("hub_token", password(), "the hub's password", "no hub is asked for anything"),
      harmless("hub_private_repo",
               flag(nullptr),
               "make the hub's repository private",
               "no repository is made on a hub"),
      harmless("hub_model_id", text(), "the hub's repository", "no repository of a hub is written"),
      harmless("hub_strategy",
               one_of({"end", "every_save", "checkpoint", "all_checkpoints"}, "every_save"),
               "what to send to the hub, and when",
               "no checkpoint is sent to a hub"),
      harmless("hub_always_push",
               flag(false),
               "send although the last sending still goes on",
               "no sending to a hub goes on"),
      harmless("hub_revision", text(), "the hub's branch", "no branch of a hub is written"),
      replaced_by("hub_model_id",
                  harmless("push_to_hub_model_id",
                           text(),
                           "the hub's repository, in older releases",
                           "push_to_hub is refused, so it needs no repository")),
      harmless("push_to_hub_organization",
               text(),
               "the hub's organization, in older releases",
               "push_to_hub is refused, so it needs no organization"),
      replaced_by("hub_token",
                  harmless("push_to_hub_token",
                           password(),
                           "the hub's password, in older releases",
                           "push_to_hub is refused, so it needs no password")),
  };
}

}  // namespace

Declarations transformers_run_keys() {
  return joined({in_section("Actions", action_keys()),
                 in_section("Logging", logging_keys()),
                 in_section("Evaluation", evaluation_keys()),
                 in_section("Hub", hub_keys())});
}

}  // namespace zeroth::config
