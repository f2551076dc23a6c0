#include "cli/checks.h"

#include <algorithm>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/output_folder.h"
#include "checkpoint/folder.h"
#include "formats/adapter.h"
#include "formats/safetensors.h"
#include "inputs/data_inputs.h"
#include "shapes/families.h"
#include <fmt/format.h>

namespace zeroth::cli {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool is_same(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return fs::equivalent(a, b, error) && !error;
}

void require_folder(const std::string& option, const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    throw Error(
        ErrorKind::kModel,
        fmt::format("{} is not a folder (--{})\n  Give a folder on this machine; nothing is "
                    "downloaded by name.",
                    folder,
                    option));
  }
}

void require_file(const fs::path& file, const std::string& purpose) {
  if (!is_there(file)) {
    throw Error(ErrorKind::kModel, fmt::format("{} is missing: {}", file.string(), purpose));
  }
}

void check_data_file(const std::string& file) {
  std::error_code error;
  if (fs::is_fifo(file, error) || fs::is_socket(file, error)) {
    throw Error(ErrorKind::kData,
                fmt::format("{} is a pipe or a socket, and data is read more than once\n  Write it "
                            "to a file first.",
                            file));
  }
  if (is_there(file)) {
    return;
  }
  const bool bare_name = file.find('/') == std::string::npos && !fs::path(file).has_extension();
  if (bare_name) {
    throw Error(
        ErrorKind::kData,
        fmt::format("there is neither a file {} nor a dataset_info.json that would know the "
                    "name\n  Give the path of the data file, or --dataset_dir with the "
                    "folder of dataset_info.json.",
                    file));
  }
  throw Error(
      ErrorKind::kData,
      fmt::format("there is no data file {}\n  Relative paths start from --dataset_dir, or from "
                  "the working folder.",
                  file));
}

bool has_chat_template(const fs::path& folder) {
  if (is_there(folder / "chat_template.jinja") || is_there(folder / "chat_template.json")) {
    return true;
  }
  const fs::path file = folder / "tokenizer_config.json";
  if (!is_there(file)) {
    return false;
  }
  const Json json =
      parse_json(read_file(file, ErrorKind::kModel), file.string(), ErrorKind::kFormat);
  return json.is_object() && json.contains("chat_template") && !json["chat_template"].is_null();
}

}  // namespace

void check_model_folder(const config::ModelSettings& model) {
  const fs::path folder = model.model_name_or_path;
  require_folder("model_name_or_path", model.model_name_or_path);
  (void)shapes::read_model_config(folder / "config.json");
  (void)formats::ModelWeights(folder);  // its files are there and fit together
  require_file(folder / "tokenizer.json",
               "text cannot become tokens without it\n  Fetch the model with its "
               "tokenizer, or copy the tokenizer files of the model that it was made from");
  for (const std::string& given : model.adapter_folders()) {
    const fs::path adapter = given;
    require_folder("adapter_name_or_path", given);
    require_file(adapter / formats::kAdapterConfigFile, "an adapter folder has one");
    (void)formats::open_tensor_file(formats::adapter_weights_path(adapter));
  }
}

void check_data_files(const config::DataSettings& data) {
  for (const auto* files : {&data.dataset, &data.eval_dataset}) {
    for (const data::Source& source : inputs::sources_of(*files)) {
      check_data_file(source.file.string());
    }
  }
}

void check_prompt_format(const config::RunConfig& config) {
  const bool prompts = config.command == config::Command::kPredict ||
                       config.data.stage == config::TrainStage::kSupervised;
  if (prompts && config.data.prompt_template.empty() &&
      has_chat_template(config.model.model_name_or_path)) {
    throw Error(ErrorKind::kConfig,
                fmt::format("{} brings a chat template, which is not rendered yet\n  Say which "
                            "prompt format to use: "
                            "--template alpaca, default or empty.",
                            config.model.model_name_or_path));
  }
}

void check_threads(const config::RunConfig& config) {
  constexpr std::int64_t kAlwaysAllowed = 64;
  const auto cores = static_cast<std::int64_t>(std::thread::hardware_concurrency());
  const std::int64_t most = std::max(kAlwaysAllowed, 4 * cores);
  if (config.threads > most) {
    throw Error(ErrorKind::kConfig,
                fmt::format("--threads {} on a machine of {} cores (at most {} here)\n  Leave the "
                            "option out to use all cores.",
                            config.threads,
                            cores,
                            most));
  }
}

void check_output_folder(const config::RunConfig& config,
                         const std::vector<std::string>& more_results) {
  const std::string& folder = config.output.output_dir;
  std::vector<std::string> inputs = config.model.adapter_folders();
  inputs.push_back(config.model.model_name_or_path);
  for (const std::string& input : inputs) {
    if (!input.empty() && is_same(folder, input)) {
      throw Error(
          ErrorKind::kConfig,
          fmt::format("--output_dir {} is the folder that the run reads from\n  Choose another "
                      "folder, so that nothing is lost.",
                      folder));
    }
  }
  if (!config.resume.folder.empty() && checkpoint::lies_in(config.resume.folder, folder)) {
    return;
  }
  if (config.resume.from == "auto" && holds_records_alone(folder)) {
    return;  // of a run that was stopped before its first checkpoint
  }
  refuse_existing_results(folder, config.output.overwrite_output_dir, more_results);
}

}  // namespace zeroth::cli
