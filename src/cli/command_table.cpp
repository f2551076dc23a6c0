#include "cli/command_table.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/printing.h"
#include "base/text.h"
#include "config/schema.h"
#include <fmt/format.h>

namespace zeroth::cli {
namespace {

using config::Command;

const std::vector<Entry>& entries() {
  static const std::vector<Entry> table{
      {Command::kTrain,
       "train a model: LoRA or all weights, on instructions or plain text",
       "  zeroth train --model_name_or_path MODEL --dataset rows.json --template alpaca \\\n"
       "      --per_device_train_batch_size 1 --gradient_accumulation_steps 8 --learning_rate 2e-4 "
       "--output_dir out\n"
       "  zeroth train --model_name_or_path MODEL --stage pt --dataset book.txt --finetuning_type "
       "full --bf16 \\\n"
       "      --max_steps 200 --output_dir out\n",
       run_train},
      {Command::kEval,
       "loss and perplexity of a model on data",
       "  zeroth eval --model_name_or_path MODEL --adapter_name_or_path out --eval_dataset "
       "held_out.json\n"
       "  zeroth eval --model_name_or_path MODEL --stage pt --eval_dataset book.txt --format "
       "json\n",
       run_eval},
      {Command::kPredict,
       "write a model's answers to the rows of a data file, and count exact matches",
       "  zeroth predict --model_name_or_path MODEL --adapter_name_or_path out --eval_dataset "
       "held_out.json \\\n"
       "      --max_new_tokens 64 --output_dir predictions\n"
       "  zeroth predict --model_name_or_path MODEL --dataset rows.json --do_sample --temperature "
       "0.7 --output_dir p\n",
       run_predict},
      {Command::kExport,
       "merge adapters into their model: a folder that stands alone",
       "  zeroth export --merge --model_name_or_path MODEL --adapter_name_or_path out --output_dir "
       "merged\n"
       "  zeroth export --merge --model_name_or_path MODEL --adapter_name_or_path first,second "
       "--export_dtype bf16 --output_dir merged\n",
       run_export},
      {Command::kBench,
       "how fast updates are on this machine, where the time goes, and how near its limit",
       "  zeroth bench --model_config config.json --finetuning_type lora --lora_rank 16 --dtype "
       "bf16 \\\n      --rows 4 --tokens 256\n"
       "  zeroth bench --model_name_or_path MODEL --finetuning_type full --dtype bf16 --ranks 2 "
       "--zero_stage 3 --format json\n",
       run_bench},
      {Command::kLaunch,
       "start a program of your own that uses the library, on several ranks of this host",
       "  zeroth launch --ranks 2 -- ./my_program --its-own options\n",
       run_launch},
      {Command::kCheck,
       "what would be in force, from which source, and everything that is wrong",
       "  zeroth check --deepspeed ds_config.json --per_device_train_batch_size 1 \\\n"
       "      --gradient_accumulation_steps 8 --world_size 4\n"
       "  zeroth check recipe.yaml --strict --expect train_batch_size=32\n"
       "  zeroth check --deepspeed new.json --diff old.json --format json\n",
       run_check},
      {Command::kPlan,
       "how much memory and traffic a run needs, on any machine, without weights",
       "  zeroth plan --model_config config.json --bf16 --ranks 4 --device_memory 80GiB\n"
       "  zeroth plan recipe.yaml --model_config config.json --world_size 1024 --device_memory "
       "80GB "
       "\\\n"
       "      --write ds_config.json\n"
       "  zeroth plan --model_name_or_path MODEL --finetuning_type full --zero_stage 3 --ranks 8 "
       "--format json\n",
       run_plan},
      {Command::kExplain,
       "what a key does, where it may stand, and what it is here",
       "  zeroth explain gradient_accumulation_steps\n"
       "  zeroth explain zero_optimization.stage --deepspeed ds_config.json\n",
       run_explain},
      {Command::kInspect,
       "what a model folder, adapter or checkpoint holds, and whether it is whole",
       "  zeroth inspect MODEL\n"
       "  zeroth inspect out/checkpoint-20\n"
       "  zeroth inspect out/checkpoint-20 --diff out/checkpoint-40 --format json\n",
       run_inspect},
      {Command::kEnv,
       "versions, processor features, kernels and launchers of this machine",
       "  zeroth env\n"
       "  zeroth env --format json\n",
       run_env},
      {Command::kInitModel,
       "make a model folder with random weights from a config.json",
       "  zeroth init-model --model_config config.json --seed 1 --output_dir base\n",
       run_init_model},
      {Command::kTokenize,
       "text to token ids and back, one JSON value a line",
       "  echo '\"Hello there\"' | zeroth tokenize --model_name_or_path MODEL\n"
       "  echo '[1, 403, 407]' | zeroth tokenize --model_name_or_path MODEL --decode\n",
       run_tokenize},
      {Command::kTrainTokenizer,
       "make a byte-level BPE tokenizer.json from text",
       "  zeroth train-tokenizer book.txt rows.json --vocab_size 2048 --output_dir tokenizer\n",
       run_train_tokenizer},
  };
  return table;
}

std::string overview() {
  std::string text =
      "zeroth trains and fine-tunes language models.\n\nUsage: zeroth COMMAND [--option value "
      "...]\n\nCommands\n";
  for (const Entry& entry : entries()) {
    text += fmt::format("  {:<16} {}\n", config::command_name(entry.command), entry.summary);
  }
  return text +
         "\nzeroth COMMAND --help shows a command's options and examples; zeroth --version the "
         "version.\n";
}

std::string help_of(const Entry& entry) {
  const std::string name = config::command_name(entry.command);
  const bool in_family =
      (config::bit(entry.command) & (config::kRunFamily | config::kCheckOnly)) != 0;
  const std::string family =
      in_family && entry.command != Command::kTrain
          ? "\nEvery option of zeroth train may be given too; the start table lists those "
            "without effect.\n"
          : "";
  return fmt::format("zeroth {}: {}\n\nExamples\n{}\n{}{}",
                     name,
                     entry.summary,
                     entry.examples,
                     config::options_help(entry.command),
                     family);
}

const Entry& find_command(const std::string& name) {
  std::vector<std::string> names;
  for (const Entry& entry : entries()) {
    names.push_back(config::command_name(entry.command));
    if (names.back() == name) {
      return entry;
    }
  }
  const std::vector<std::string> near = nearest(name, names);
  throw Error(
      ErrorKind::kUsage,
      near.empty()
          ? fmt::format("unknown command \"{}\"\n  The commands are {}.", name, join(names, ", "))
          : fmt::format(
                "unknown command \"{}\" (did you mean {}?)\n  zeroth --help lists the commands.",
                name,
                join(near, " or ")));
}

// Behind "--" stands what is somebody else's.
bool asks_for_help(Arguments arguments) {
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  return std::any_of(arguments.begin(), end, [](const std::string& argument) {
    return argument == "--help" || argument == "-h";
  });
}

int print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return 0;
}

int dispatch_or_throw(Arguments arguments) {
  if (arguments.empty()) {
    throw Error(ErrorKind::kUsage, "no command given\n\n" + overview());
  }
  const std::string& first = arguments.front();
  if (first == "--version" || first == "version") {
    return print("zeroth " ZEROTH_VERSION "\n");
  }
  if (first == "--help" || first == "-h" || first == "help") {
    return print(arguments.size() > 1 ? help_of(find_command(arguments[1])) : overview());
  }
  const Entry& entry = find_command(first);
  const Arguments rest = arguments.subspan(1);
  return asks_for_help(rest) ? print(help_of(entry)) : entry.run(rest);
}

}  // namespace

std::span<const Entry> command_table() {
  return entries();
}

int dispatch(Arguments arguments) {
  try {
    return dispatch_or_throw(arguments);
  } catch (const Error& error) {
    log::info(visible(fmt::format("{}: {}", kind_name(error.kind()), error.what())));
    return exit_code(error.kind());
  } catch (const std::exception& error) {
    log::info(fmt::format("{}: {}", kind_name(ErrorKind::kInternal), error.what()));
    return exit_code(ErrorKind::kInternal);
  }
}

}  // namespace zeroth::cli
