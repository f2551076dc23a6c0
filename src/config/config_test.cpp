#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/field.h"
#include "config/report.h"
#include "config/resolve.h"
#include "config/schema.h"
#include <gtest/gtest.h>

namespace zeroth::config {
namespace {

using Arguments = std::vector<std::string>;

Arguments train_with(Arguments more) {
  Arguments arguments{"--model_name_or_path", "m", "--dataset", "d.json", "--output_dir", "out"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

RunConfig train(Arguments more, const Environment& environment = {}) {
  return resolve(Command::kTrain, train_with(std::move(more)), environment);
}

std::string error_of(Command command,
                     const Arguments& arguments,
                     const Environment& environment = {}) {
  try {
    (void)resolve(command, arguments, environment);
  } catch (const Error& error) {
    EXPECT_EQ(exit_code(error.kind()), 2);
    return error.what();
  }
  return "accepted";
}

std::string train_error(Arguments more, const Environment& environment = {}) {
  return error_of(Command::kTrain, train_with(std::move(more)), environment);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string why_without_effect(const RunConfig& config, const std::string& key) {
  for (const IdleSetting& setting : config.without_effect) {
    if (setting.key == key) {
      return setting.why;
    }
  }
  return "";
}

TEST(Schema, EveryDefaultIsTheOneThatRunConfigStartsWith) {
  for (const Declaration& key : schema()) {
    if (key.field.get && !key.default_value.is_null()) {
      EXPECT_EQ(key.field.get(RunConfig{}), key.default_value) << key.name;
    }
  }
}

TEST(Schema, ScheduleNamesAreThoseOfTheArithmetic) {
  const std::vector<std::string> names = choices_of<ScheduleKind>();
  ASSERT_EQ(names.size(), arithmetic::all_schedules().size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(names[i], arithmetic::name_of(arithmetic::all_schedules()[i]));
  }
}

TEST(Schema, EveryKeySaysWhatItIsFor) {
  for (const Declaration& key : schema()) {
    EXPECT_NE(key.commands, 0U) << key.name;
    EXPECT_FALSE(key.help.empty() && key.reason.empty()) << key.name;
    EXPECT_EQ(key.type == ValueType::kChoice,
              !key.choices.empty() || !key.planned_choices.empty() || !key.refused_choices.empty())
        << key.name;
  }
}

TEST(Schema, HelpNamesEveryOptionThatHasAnEffect) {
  for (const Command command : all_commands()) {
    const std::string help = options_help(command);
    for (const Declaration& key : schema()) {
      if (key.status == Status::kInForce && (key.commands & bit(command)) != 0) {
        EXPECT_TRUE(has(help, "--" + key.name + " ")) << command_name(command) << " " << key.name;
      }
    }
  }
}

TEST(Resolve, GivesTheDocumentedDefaults) {
  const RunConfig config = train({});
  EXPECT_EQ(config.finetune.type, FinetuningType::kLora);
  EXPECT_EQ(config.finetune.lora_rank, 8);
  EXPECT_EQ(config.finetune.lora_alpha, 16);
  EXPECT_EQ(config.finetune.lora_targets, std::vector<std::string>{"all"});
  EXPECT_EQ(config.batch.global_rows(), 8);
  EXPECT_EQ(config.optimizer.learning_rate, 5e-5);
  EXPECT_EQ(config.schedule.num_train_epochs, 3);
  EXPECT_EQ(config.schedule.max_steps, -1);
  EXPECT_EQ(config.data.cutoff_len, 0);
  EXPECT_EQ(config.seed, 42U);
  EXPECT_FALSE(config.generation.do_sample);
}

TEST(Resolve, ReadsEverySpellingOfAnOption) {
  const RunConfig config = train({"--max-steps=5",
                                  "learning_rate=2e-4",
                                  "--bf16",
                                  "--batch_size",
                                  "2",
                                  "--lr-scheduler-type",
                                  "cosine",
                                  "--no_packing",
                                  "--stage",
                                  "pt",
                                  "--optim",
                                  "adamw_torch_fused"});
  EXPECT_EQ(config.schedule.max_steps, 5);
  EXPECT_EQ(config.optimizer.learning_rate, 2e-4);
  EXPECT_EQ(config.model.precision, Precision::kBf16);
  EXPECT_EQ(config.batch.micro_batch_rows, 2);
  EXPECT_EQ(config.schedule.kind, ScheduleKind::kCosine);
  EXPECT_FALSE(config.data.packing);
  EXPECT_EQ(config.optimizer.kind, OptimizerKind::kAdamW);
}

TEST(Resolve, ASwitchTakesOnlyABooleanWord) {
  EXPECT_EQ(train({"--bf16", "false"}).model.precision, Precision::kFp32);
  EXPECT_EQ(train({"--bf16", "max_steps=3"}).schedule.max_steps, 3);
  EXPECT_TRUE(has(train_error({"--bf16", "maybe"}), "unexpected word \"maybe\""));
}

TEST(Resolve, IntegersMayHaveAnExponentButNoFraction) {
  EXPECT_EQ(train({"--max_steps", "2e8"}).schedule.max_steps, 200000000);
  EXPECT_TRUE(
      has(train_error({"--max_steps", "8.5"}), "--max_steps takes an integer, not \"8.5\""));
  EXPECT_TRUE(has(train_error({"--max_steps", "1e30"}), "takes an integer"));
  EXPECT_TRUE(has(train_error({"--max_steps", "8x"}), "takes an integer"));
  EXPECT_TRUE(has(train_error({"--max_steps", ""}), "takes an integer"));
}

TEST(Resolve, RefusesValuesOutOfRange) {
  EXPECT_TRUE(has(train_error({"--lora_dropout", "1"}), "must be at least 0 and below 1"));
  EXPECT_TRUE(has(train_error({"--gradient_accumulation_steps", "0"}), "must be at least 1"));
  EXPECT_TRUE(has(train_error({"--learning_rate", "nan"}), "takes a number"));
  EXPECT_TRUE(has(train_error({"--max_steps", "0"}), "at least 1 and at most 1e+15, or -1"));
  EXPECT_TRUE(has(train_error({"--lr_scheduler_type", "step"}), "takes one of linear, cosine"));
  EXPECT_TRUE(has(train_error({"--dataset=a,,b"}), "none of them empty"));
}

TEST(Resolve, ShowsAllErrorsTogether) {
  const std::string error =
      error_of(Command::kTrain, {"--max_steps", "x", "--lora_rnk", "3", "--bf16", "--fp16"});
  EXPECT_TRUE(has(error, "--max_steps takes an integer")) << error;
  EXPECT_TRUE(has(error, "did you mean --lora_rank")) << error;
  EXPECT_TRUE(has(error, "--bf16 and --fp16 are both on")) << error;
  EXPECT_TRUE(has(error, "--model_name_or_path is required")) << error;
  EXPECT_TRUE(has(error, "--dataset is required")) << error;
  EXPECT_TRUE(has(error, "--output_dir is required")) << error;
}

TEST(Resolve, SaysWhereAnOptionBelongs) {
  EXPECT_TRUE(has(train_error({"--vocab_size", "300"}),
                  "an option of zeroth train-tokenizer, not of zeroth train"));
  EXPECT_TRUE(has(error_of(Command::kInitModel, {"--max_steps", "3"}),
                  "an option of zeroth train, not of"));
}

TEST(Resolve, AnOptionGivenTwiceMustSayTheSame) {
  EXPECT_EQ(train({"--max_steps", "5", "--max-steps=5"}).schedule.max_steps, 5);
  EXPECT_TRUE(has(train_error({"--batch_size", "1", "--per_device_train_batch_size", "2"}),
                  "given twice: 1 and 2"));
}

TEST(Resolve, RefusesByNameWhatIsNotBuilt) {
  EXPECT_TRUE(has(train_error({"--plot_loss"}), "--plot_loss true: not supported yet"));
  EXPECT_TRUE(has(error_of(Command::kTokenize, {"--model_name_or_path", "m", "--messages"}),
                  "chat templates"));
}

TEST(Resolve, ValuesThatAskForNothingAreListedNotRefused) {
  const RunConfig config = train({"--save_strategy",
                                  "no",
                                  "--save_total_limit",
                                  "5",
                                  "--report_to",
                                  "none",
                                  "--plot_loss",
                                  "false",
                                  "--do_train"});
  EXPECT_EQ(why_without_effect(config, "save_total_limit"), "save_strategy is no");
  EXPECT_EQ(why_without_effect(config, "report_to"), "this is how it is anyway");
  EXPECT_EQ(why_without_effect(config, "plot_loss"), "this is how it is anyway");
  EXPECT_EQ(why_without_effect(config, "do_train"), "the command says it already");
}

TEST(Resolve, TheStrongerOfTwoSettingsIsNamed) {
  const RunConfig config = train({"--max_steps",
                                  "9",
                                  "--num_train_epochs",
                                  "2",
                                  "--warmup_steps",
                                  "3",
                                  "--warmup_ratio",
                                  "0.1"});
  EXPECT_TRUE(has(why_without_effect(config, "num_train_epochs"), "max_steps"));
  EXPECT_TRUE(has(why_without_effect(config, "warmup_ratio"), "warmup_steps"));
  EXPECT_EQ(config.schedule.warmup_ratio, 0);
}

TEST(Resolve, AdapterSettingsHaveNoEffectOnFullTraining) {
  const RunConfig config = train({"--finetuning_type", "full", "--lora_rank", "4"});
  EXPECT_TRUE(has(why_without_effect(config, "lora_rank"), "finetuning_type is full"));
  EXPECT_EQ(config.finetune.lora_rank, RunConfig{}.finetune.lora_rank);
}

TEST(Resolve, AlphaFollowsTheRankUnlessGiven) {
  EXPECT_EQ(train({"--lora_rank", "16"}).finetune.lora_alpha, 32);
  EXPECT_EQ(train({"--lora_rank", "16", "--lora_alpha", "8"}).finetune.lora_alpha, 8);
}

TEST(Resolve, MomentumMayComeInOptimizerArguments) {
  EXPECT_EQ(train({"--optim", "sgd", "--optim_args", "momentum=0.9"}).optimizer.momentum, 0.9);
  const OptimizerSettings both =
      train({"--optim", "sgd", "--optim_args", "momentum=0.9, nesterov=true"}).optimizer;
  EXPECT_EQ(both.momentum, 0.9);
  EXPECT_TRUE(both.nesterov);
  EXPECT_EQ(train({"--optim", "adagrad", "--optim_args", "lr_decay=0.5"}).optimizer.lr_decay, 0.5);
  for (const char* wrong : {"beta=1", "momentum", "momentum=0.9=1"}) {
    EXPECT_TRUE(has(train_error({"--optim", "sgd", "--optim_args", wrong}),
                    "with a value, such as momentum=0.9, not \"" + std::string(wrong)))
        << wrong;
  }
  EXPECT_TRUE(has(train_error({"--optim", "sgd", "--optim_args", "momentum=1.5"}),
                  "momentum must be at least 0 and below 1"));
}

TEST(Resolve, OneSourceOfEvaluationRows) {
  EXPECT_TRUE(has(train_error({"--val_size", "0.1", "--eval_dataset", "e.json"}), "give one"));
  EXPECT_TRUE(has(train_error({"--eval_strategy", "steps"}), "no rows to evaluate on"));
  EXPECT_TRUE(has(train_error({"--val_size", "1.5"}), "neither a number of rows nor a share"));
  EXPECT_TRUE(
      has(error_of(Command::kEval, {"--model", "m"}), "--eval_dataset or --dataset is required"));
}

TEST(Resolve, G07MaxLengthAndMaxNewTokensAreNotBothGiven) {
  const Arguments predict{
      "--model", "m", "--dataset", "d", "--output_dir", "o", "--max_length", "50"};
  const RunConfig config = resolve(Command::kPredict, predict, {});
  EXPECT_EQ(config.generation.max_length, 50);
  EXPECT_EQ(config.generation.max_new_tokens, 0);
  Arguments both = predict;
  both.insert(both.end(), {"--max_new_tokens", "60"});
  EXPECT_TRUE(has(error_of(Command::kPredict, both), "both bound the answer"));
}

TEST(Resolve, OneCommandLineServesTrainEvalAndPredict) {
  const Arguments line =
      train_with({"--learning_rate", "1e-4", "--template", "alpaca", "--max_new_tokens", "7"});
  EXPECT_EQ(resolve(Command::kTrain, line, {}).data.prompt_template, "alpaca");
  EXPECT_EQ(why_without_effect(resolve(Command::kTrain, line, {}), "max_new_tokens"),
            "a setting of zeroth predict");
  EXPECT_EQ(why_without_effect(resolve(Command::kPredict, line, {}), "learning_rate"),
            "a setting of zeroth train, bench");
}

TEST(Resolve, EvaluationReadsAllRowsAndSaysSo) {
  const Arguments line = train_with({"--val_size", "0.1", "--eval_dataset", "e.json"});
  const RunConfig config = resolve(Command::kEval, line, {});
  EXPECT_EQ(why_without_effect(config, "val_size"), "eval_dataset is read instead");
  EXPECT_EQ(why_without_effect(config, "dataset"), "eval_dataset is read instead");
  EXPECT_TRUE(config.data.dataset.empty());
}

TEST(Resolve, EvaluationWithoutAFileTakesTheSplitOfTraining) {
  const RunConfig config =
      resolve(Command::kEval, train_with({"--val_size", "0.1", "--seed", "7"}), {});
  EXPECT_EQ(config.data.val_size, 0.1);
  EXPECT_EQ(config.seed, 7U);
}

TEST(Resolve, AdaptersAreGivenWithCommasBetweenThem) {
  EXPECT_EQ(train({"--adapter_name_or_path", "a, b/c"}).model.adapter_folders(),
            (std::vector<std::string>{"a", "b/c"}));
  EXPECT_TRUE(train({}).model.adapter_folders().empty());
  EXPECT_TRUE(has(train_error({"--adapter_name_or_path", "a", "--finetuning_type", "freeze"}),
                  "freeze training has no adapter"));
}

TEST(Resolve, PatternsAndLayersOfAnAdapterAreNumbers) {
  const RunConfig config =
      train({"--rank_pattern", R"({"q_proj": 4})", "--layers_to_transform", "0,2"});
  EXPECT_EQ(config.finetune.rank_pattern, Json({{"q_proj", 4}}));
  EXPECT_EQ(config.finetune.layers_to_transform, (std::vector<std::string>{"0", "2"}));
  EXPECT_TRUE(has(train_error({"--rank_pattern", R"({"q_proj": 0})"}), "whole number above 0"));
  EXPECT_TRUE(has(train_error({"--alpha_pattern", R"({"q_proj": "x"})"}), "number above 0"));
  EXPECT_TRUE(has(train_error({"--layers_to_transform", "last"}), "no number of a layer"));
}

TEST(Resolve, WhatBelongsToAnotherWayOfTrainingHasNoEffect) {
  EXPECT_TRUE(
      has(why_without_effect(train({"--freeze_trainable_layers", "1"}), "freeze_trainable_layers"),
          "not freeze"));
  EXPECT_TRUE(has(
      why_without_effect(train({"--finetuning_type", "freeze", "--use_dora", "true"}), "use_dora"),
      "finetuning_type is freeze"));
  EXPECT_TRUE(
      has(why_without_effect(train({"--loraplus_lr_embedding", "1e-5"}), "loraplus_lr_embedding"),
          "loraplus_lr_ratio is not given"));
  EXPECT_TRUE(has(why_without_effect(train({"--create_new_adapter", "true"}), "create_new_adapter"),
                  "a new one starts anyway"));
}

TEST(Resolve, AnAdapterThatIsGivenBringsItsModules) {
  const RunConfig config = train({"--adapter_name_or_path", "a", "--lora_target", "q_proj"});
  EXPECT_TRUE(has(why_without_effect(config, "lora_target"), "brings its own"));
}

TEST(Resolve, DataFilesStartFromDatasetDir) {
  const RunConfig config = train({"--dataset_dir", "data", "--eval_dataset", "/abs/e.json"});
  EXPECT_EQ(config.data.dataset, std::vector<std::string>{"data/d.json"});
  EXPECT_EQ(config.data.eval_dataset, std::vector<std::string>{"/abs/e.json"});
}

TEST(Resolve, ALauncherSaysHowManyRanksThereAre) {
  const RunConfig config =
      train({}, {{"WORLD_SIZE", "4"}, {"RANK", "3"}, {"MASTER_PORT", "29500"}});
  EXPECT_EQ(config.batch.world_size, 4);
  EXPECT_EQ(config.launch.rank, 3);
  EXPECT_EQ(config.launch.kind, LaunchKind::kHost);
  EXPECT_EQ(train({}, {{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "1"}}).launch.kind,
            LaunchKind::kMpi);
  EXPECT_EQ(train({}, {{"WORLD_SIZE", "1"}, {"RANK", "0"}}).launch.kind, LaunchKind::kLocal);
}

TEST(Resolve, LaunchersThatContradictAreRefused) {
  EXPECT_TRUE(
      has(train_error({}, {{"WORLD_SIZE", "4"}}), "WORLD_SIZE=4 (environment) without RANK"));
  EXPECT_TRUE(
      has(train_error({}, {{"WORLD_SIZE", "four"}, {"RANK", "0"}}), "is not a number of ranks"));
  EXPECT_TRUE(has(train_error({}, {{"WORLD_SIZE", "2"}, {"RANK", "2"}}), "is not below"));
  EXPECT_TRUE(has(train_error({"--ranks", "2"}, {{"WORLD_SIZE", "4"}, {"RANK", "0"}}),
                  "a launcher has started the ranks"));
}

TEST(Resolve, TokenizerFilesMayStandBare) {
  const RunConfig config =
      resolve(Command::kTrainTokenizer,
              Arguments{"a.txt", "b.json", "--vocab_size", "300", "--output_dir", "o"},
              {});
  EXPECT_EQ(config.data.dataset, (std::vector<std::string>{"a.txt", "b.json"}));
  EXPECT_EQ(config.vocab_size, 300);
}

// No value that was written may disappear: each is in force, overridden, without effect, planned,
// or an error that names it.
TEST(Resolve, EveryKeyGivenIsAccountedFor) {
  for (const Declaration& key : schema()) {
    if (!accepts(Command::kTrain, key)) {
      continue;
    }
    const std::string value =
        key.type == ValueType::kChoice && !key.choices.empty() ? key.choices.front() : "1";
    const Resolution result =
        resolve_all(Command::kTrain, train_with({"--" + key.name + "=" + value}), {});
    const auto written =
        std::find_if(result.account.begin(), result.account.end(), [&](const Written& one) {
          return one.path == key.name && one.source == "command line";
        });
    ASSERT_NE(written, result.account.end()) << key.name;
    if (written->outcome == Outcome::kRefused) {
      const auto& problems = result.problems.all();
      EXPECT_TRUE(
          std::any_of(problems.begin(),
                      problems.end(),
                      [&](const Problem& problem) { return has(problem.message, key.name); }))
          << key.name << ": " << written->note;
    }
  }
}

TEST(StartTable, ShowsWhatWasSetAndWhatIsWithoutEffect) {
  const std::string table = start_table(train({"--max_steps", "20", "--num_train_epochs", "1"}));
  EXPECT_TRUE(has(table, "max_steps")) << table;
  EXPECT_TRUE(has(table, "command line")) << table;
  EXPECT_TRUE(has(table, "max_steps is given and decides")) << table;
  EXPECT_FALSE(has(table, "weight_decay")) << table;
}

}  // namespace
}  // namespace zeroth::config
