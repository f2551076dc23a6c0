#include "cli/inspect_read.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "formats/adapter.h"
#include "formats/checksum.h"
#include "formats/strict_json.h"
#include "formats/verify_content.h"
#include "formats/weights_writer.h"
#include <fmt/format.h>

namespace zeroth::cli {
namespace {

namespace fs = std::filesystem;
using formats::TensorFile;

constexpr auto kConfigFile = "config.json";
constexpr auto kWeightsFile = "model.safetensors";
constexpr auto kIndexFile = "model.safetensors.index.json";
constexpr auto kTorchFile = "pytorch_model.bin";
constexpr auto kTorchIndexFile = "pytorch_model.bin.index.json";
constexpr auto kSettingsFile = "effective_config.json";

std::string first_line(const Error& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

bool stands(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

std::int64_t size_of(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : static_cast<std::int64_t>(size);
}

std::vector<std::string> safetensors_in(const fs::path& folder, const std::string& start) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(start) && name.ends_with(".safetensors")) {
      names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

class Reading {
 public:
  explicit Reading(const fs::path& path) { found_.path = path; }

  Inspected read() && {
    if (!fs::is_directory(found_.path)) {
      read_file_alone();
    } else if (is_checkpoint()) {
      read_checkpoint();
    } else {
      read_output();
    }
    return std::move(found_);
  }

 private:
  [[nodiscard]] fs::path at(const std::string& name) const { return found_.path / name; }

  [[nodiscard]] bool has(const std::string& name) const { return stands(at(name)); }

  // One without its list was left by a process that was stopped, or by somebody's copy.
  [[nodiscard]] bool is_checkpoint() const {
    return has(checkpoint::kManifestFile) || !safetensors_in(found_.path, "state-").empty();
  }

  [[nodiscard]] bool holds_adapter() const {
    return has(formats::kAdapterConfigFile) || has(formats::kAdapterWeightsFile) ||
           has(formats::kAdapterTorchFile);
  }

  [[nodiscard]] bool holds_model() const {
    return has(kConfigFile) || has(kWeightsFile) || has(kIndexFile) || has(kTorchFile) ||
           has(kTorchIndexFile);
  }

  void read_file_alone() {
    const fs::path file = found_.path;
    found_.path = file.parent_path();
    (void)formats::open_tensor_file(file);  // of a file alone there is nothing else to show
    take_weights(file.filename().string());
    found_.path = file;
  }

  // A result, checkpoints beside it, or both.
  void read_output() {
    found_.checkpoints = checkpoint::checkpoints_in(found_.path);
    if (has(checkpoint::kLatestFile)) {
      found_.latest = trim(read_file(at(checkpoint::kLatestFile), ErrorKind::kCheckpoint));
    }
    if (holds_adapter()) {
      read_adapter();
    } else if (holds_model()) {
      read_model();
    } else if (!found_.checkpoints.empty() || has(kSettingsFile)) {
      found_.kind = Holding::kOutput;
      take_settings(kSettingsFile);
    } else {
      refuse_folder();
    }
  }

  void read_adapter() {
    found_.kind = Holding::kAdapter;
    const fs::path weights = formats::adapter_weights_path(found_.path);
    take_config(formats::kAdapterConfigFile);
    take_weights(weights.filename().string());
  }

  void read_model() {
    found_.kind = Holding::kModel;
    take_config(kConfigFile);
    std::string misfit;
    const std::vector<std::string> names = model_files(misfit);
    for (const std::string& name : names) {
      take_weights(name);
    }
    if (!misfit.empty() && found_.is_sound()) {
      found_.faults.push_back(misfit);
    }
    const bool whole = names.front() == kWeightsFile || names.front() == kTorchFile;
    const auto* const index = has(kIndexFile) ? kIndexFile : kTorchIndexFile;
    if (!whole && has(index)) {
      take_unproved(index);
    }
  }

  // Those that a run would read; where they do not fit each other, all that there are.
  std::vector<std::string> model_files(std::string& misfit) const {
    std::vector<std::string> names;
    try {
      const formats::ModelWeights weights(found_.path);
      for (const TensorFile& file : weights.files()) {
        names.push_back(file.path().filename().string());
      }
    } catch (const Error& error) {
      names = safetensors_in(found_.path, "model");
      if (names.empty()) {
        throw;
      }
      misfit = first_line(error);
    }
    return names;
  }

  void read_checkpoint() {
    found_.kind = Holding::kCheckpoint;
    InspectedFile list{.name = checkpoint::kManifestFile, .bytes = 0, .fault = {}};
    try {
      list.bytes = size_of(at(list.name));
      found_.manifest = checkpoint::read_manifest(found_.path);
      list.outcome = FileOutcome::kVerified;
    } catch (const Error& error) {
      const bool there = has(list.name);
      list.outcome = there ? FileOutcome::kDamaged : FileOutcome::kMissing;
      list.fault = there ? first_line(error) : "is missing, and is written last";
    }
    found_.files.push_back(list);
    if (found_.manifest) {
      found_.settings = found_.manifest->settings;
      for (const checkpoint::FileEntry& file : found_.manifest->files) {
        take_listed(file);
      }
    } else {
      take_unlisted();
    }
  }

  void take_listed(const checkpoint::FileEntry& listed) {
    if (!has(listed.name)) {
      found_.files.push_back({.name = listed.name,
                              .outcome = FileOutcome::kMissing,
                              .fault = "is missing, and checkpoint.json lists it"});
    } else if (const std::int64_t bytes = size_of(at(listed.name)); bytes != listed.bytes) {
      take_any(listed.name);
      damage(fmt::format("has {} bytes instead of {}", bytes, listed.bytes));
    } else if (take_any(listed.name) != listed.checksum) {
      damage("its content is not what checkpoint.json says");
    } else if (found_.files.back().is_sound()) {
      found_.files.back().outcome = FileOutcome::kVerified;
    }
  }

  void take_unlisted() {
    for (const std::string& name : safetensors_in(found_.path, "")) {
      take_weights(name);
    }
  }

  // The checksum of what is there; empty where it cannot be read.
  std::string take_any(const std::string& name) {
    if (name.ends_with(".safetensors")) {
      return take_listed_weights(name);
    }
    take_unproved(name);
    if (name == formats::kAdapterConfigFile || name == kConfigFile) {
      found_.config = parsed(name);
    }
    return formats::checksum_of(read_file(at(name), ErrorKind::kCheckpoint));
  }

  std::string take_listed_weights(const std::string& name) {
    const TensorFile* const file = open(name);
    return file == nullptr ? "" : formats::content_checksum(*file);
  }

  void take_weights(const std::string& name) {
    const TensorFile* const file = open(name);
    if (file == nullptr) {
      return;
    }
    switch (formats::verdict_on(*file)) {
      case formats::ContentVerdict::kVerified:
        found_.files.back().outcome = FileOutcome::kVerified;
        break;
      case formats::ContentVerdict::kDamaged:
        damage("its content does not fit the checksum that was written with it");
        break;
      case formats::ContentVerdict::kNoChecksum:
        break;
    }
  }

  // Null, and the file noted as damaged, where its header is.
  const TensorFile* open(const std::string& name) {
    found_.files.push_back({.name = name, .bytes = size_of(at(name)), .fault = {}});
    try {
      const TensorFile& file = found_.opened.emplace_back(formats::open_tensor_file(at(name)));
      if (found_.kind != Holding::kCheckpoint || !checkpoint::is_state_file(name)) {
        for (const auto& [tensor, view] : file.tensors()) {
          found_.tensors.emplace(tensor, InspectedTensor{.view = &view, .file = name});
        }
      }
      return &file;
    } catch (const Error& error) {
      damage(first_line(error));
      return nullptr;
    }
  }

  // The last file; the first thing that is wrong with it says most.
  void damage(const std::string& what) {
    InspectedFile& file = found_.files.back();
    file.outcome = FileOutcome::kDamaged;
    if (file.is_sound()) {
      file.fault = what;
    }
  }

  // A file that people edit: no checksum goes with it.
  void take_unproved(const std::string& name) {
    found_.files.push_back({.name = name, .bytes = size_of(at(name)), .fault = {}});
  }

  void take_settings(const std::string& name) {
    if (!has(name)) {
      return;
    }
    take_unproved(name);
    found_.settings = parsed(name);
  }

  void take_config(const std::string& name) {
    take_settings(name);
    found_.config = found_.settings;
  }

  // Of the file that was taken last.
  Json parsed(const std::string& name) {
    try {
      return formats::parse_object(
          read_file(at(name), ErrorKind::kModel), at(name).string(), ErrorKind::kModel);
    } catch (const Error& error) {
      damage(first_line(error));
      return Json::object();
    }
  }

  [[noreturn]] void refuse_folder() const {
    try {
      const formats::ModelWeights weights(found_.path);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kNotSupported) {
        throw;  // weights of another format, with the way to convert them
      }
    }
    throw Error(ErrorKind::kModel,
                fmt::format("{} holds nothing that zeroth inspect reads\n  Looked for: a "
                            "checkpoint ({}), an adapter ({}, {}), a model ({}, {} or parts with "
                            "{}), a run's output (checkpoint-N, {}).",
                            found_.path.string(),
                            checkpoint::kManifestFile,
                            formats::kAdapterConfigFile,
                            formats::kAdapterWeightsFile,
                            kConfigFile,
                            kWeightsFile,
                            kIndexFile,
                            kSettingsFile));
  }

  Inspected found_;
};

}  // namespace

const char* name_of(Holding kind) {
  switch (kind) {
    case Holding::kModel:
      return "model";
    case Holding::kAdapter:
      return "adapter";
    case Holding::kCheckpoint:
      return "checkpoint";
    case Holding::kOutput:
      return "output";
    case Holding::kFile:
      break;
  }
  return "file";
}

const char* name_of(FileOutcome outcome) {
  switch (outcome) {
    case FileOutcome::kVerified:
      return "verified";
    case FileOutcome::kDamaged:
      return "damaged";
    case FileOutcome::kMissing:
      return "missing";
    case FileOutcome::kNoChecksum:
      break;
  }
  return "none in the file";
}

std::int64_t InspectedTensor::elements() const {
  return std::accumulate(
      view->shape.begin(), view->shape.end(), std::int64_t{1}, std::multiplies<>());
}

bool Inspected::is_sound() const {
  return faults.empty() && std::all_of(files.begin(), files.end(), [](const InspectedFile& file) {
           return file.is_sound();
         });
}

Inspected inspect(const fs::path& path) {
  if (!stands(path)) {
    throw Error(ErrorKind::kModel,
                fmt::format("there is no {}\n  Give a model folder, an adapter, a checkpoint, a "
                            "run's output folder or a safetensors file.",
                            path.string()));
  }
  return Reading(path).read();
}

}  // namespace zeroth::cli
