#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "base/file.h"
#include "base/text.h"
#include "formats/adapter.h"
#include "formats/safetensors.h"
#include "formats/strict_json.h"
#include "formats/torch_file.h"
#include <fmt/format.h>

namespace zeroth::formats {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr const char* kTorchFile = "pytorch_model.bin";
constexpr const char* kTorchIndexFile = "pytorch_model.bin.index.json";
constexpr std::size_t kListed = 10;

// "a, b, c and 7 more"
std::string list_some(const std::vector<std::string>& names) {
  const std::size_t shown_count = std::min(names.size(), kListed);
  std::string text = join(std::span(names).first(shown_count), ", ");
  if (names.size() > shown_count) {
    text += fmt::format(" and {} more", names.size() - shown_count);
  }
  return text;
}

std::vector<std::string> file_names(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

[[noreturn]] void refuse_foreign_weights(const fs::path& folder, const std::string& file) {
  throw Error(
      ErrorKind::kNotSupported,
      fmt::format(
          "{} holds its weights as {}, which is not read: safetensors and pytorch_model.bin are\n"
          "  Convert it once with Transformers: AutoModelForCausalLM.from_pretrained(\"{}\")"
          ".save_pretrained(\"NEW_FOLDER\", safe_serialization=True)",
          folder.string(),
          file,
          folder.string()));
}

bool is_foreign_weights(std::string_view name) {
  constexpr std::array<std::string_view, 4> kEndings{".bin", ".pth", ".h5", ".msgpack"};
  const bool is_checkpoint_name = name.starts_with("pytorch_model") ||
                                  name.starts_with("consolidated") ||
                                  name.starts_with("tf_model") || name.starts_with("flax_model");
  return is_checkpoint_name && std::any_of(kEndings.begin(), kEndings.end(), [&](auto ending) {
           return name.ends_with(ending);
         });
}

// "model-00001-of-00002.safetensors" and the like, which only an index makes a model of.
bool is_part(std::string_view name) {
  const bool is_torch = name.starts_with("pytorch_model-") && name.ends_with(".bin");
  return is_torch || (name.starts_with("model-") && name.ends_with(".safetensors"));
}

[[noreturn]] void fail_no_index(const fs::path& folder, const std::string& part) {
  throw Error(ErrorKind::kModel,
              fmt::format("{} holds {} without {}, which says what the file parts hold\n"
                          "  Check that the download is complete.",
                          folder.string(),
                          part,
                          part.ends_with(".bin") ? kTorchIndexFile : kIndexFile));
}

[[noreturn]] void fail_no_weights(const fs::path& folder) {
  for (const std::string& name : file_names(folder)) {
    if (is_part(name)) {
      fail_no_index(folder, name);
    }
    if (is_foreign_weights(name) || name.ends_with(".gguf")) {
      refuse_foreign_weights(folder, name);
    }
    if (name == kAdapterWeightsFile || name == kAdapterTorchFile) {
      throw Error(ErrorKind::kModel,
                  fmt::format("{} is an adapter, not a model\n  Give its base as "
                              "--model_name_or_path and this folder as --adapter_name_or_path.",
                              folder.string()));
    }
  }
  throw Error(ErrorKind::kModel,
              fmt::format("{} holds no weights: neither {}, {}, {} nor {}\n"
                          "  Check that the download is complete.",
                          folder.string(),
                          kSingleFile,
                          kIndexFile,
                          kTorchFile,
                          kTorchIndexFile));
}

void require_folder(const fs::path& folder) {
  if (!fs::is_directory(folder)) {
    throw Error(
        ErrorKind::kModel,
        fmt::format("{} is not a folder\n  A model is given as a local folder with config.json "
                    "and safetensors; nothing is downloaded.",
                    folder.string()));
  }
}

// The index, tensor -> file name. A name with a folder in it could point anywhere, so it is
// refused.
std::map<std::string, std::string> read_weight_map(const fs::path& index_path) {
  const std::string source = index_path.string();
  const SortedJson index =
      parse_table(read_file(index_path, ErrorKind::kModel), source, ErrorKind::kFormat);
  const auto weight_map = index.find("weight_map");
  if (weight_map == index.end() || !weight_map->is_object() || weight_map->empty()) {
    throw Error(
        ErrorKind::kFormat,
        fmt::format("{}: \"weight_map\" must be an object {{tensor: file}} with an entry for "
                    "each tensor",
                    source));
  }
  std::map<std::string, std::string> files;
  for (const auto& [tensor, file] : weight_map->items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    if (name.empty() || fs::path(name).filename() != name || name == "..") {
      throw Error(ErrorKind::kFormat,
                  fmt::format("{}: weight_map \"{}\" = {} is not the name of a file in this folder",
                              source,
                              printable(tensor, 120),
                              printable(file.dump(), 120)));
    }
    files.emplace(tensor, name);
  }
  return files;
}

void require_parts(const fs::path& index_path, const std::set<std::string>& parts) {
  std::vector<std::string> missing;
  for (const std::string& part : parts) {
    if (!fs::exists(index_path.parent_path() / part)) {
      missing.push_back(part);
    }
  }
  if (!missing.empty()) {
    throw Error(ErrorKind::kModel,
                fmt::format("{} of the {} file parts named by {} are missing: {}\n"
                            "  Check that the download is complete.",
                            missing.size(),
                            parts.size(),
                            index_path.string(),
                            list_some(missing)));
  }
}

}  // namespace

TensorFile open_tensor_file(const fs::path& path) {
  return path.extension() == ".bin" ? TensorFile(TorchFile(path))
                                    : TensorFile(SafetensorsFile(path));
}

ModelWeights::ModelWeights(const fs::path& folder) : folder_(folder) {
  require_folder(folder);
  if (fs::exists(folder / kSingleFile)) {
    open_single(folder / kSingleFile);
  } else if (fs::exists(folder / kIndexFile)) {
    open_parts(folder / kIndexFile);
  } else if (fs::exists(folder / kTorchFile)) {
    open_single(folder / kTorchFile);
  } else if (fs::exists(folder / kTorchIndexFile)) {
    open_parts(folder / kTorchIndexFile);
  } else {
    fail_no_weights(folder);
  }
}

void ModelWeights::open_single(const fs::path& path) {
  files_.push_back(open_tensor_file(path));
  for (const auto& [name, view] : files_.front().tensors()) {
    file_index_.emplace(name, 0);
  }
}

void ModelWeights::open_parts(const fs::path& index_path) {
  const std::map<std::string, std::string> weight_map = read_weight_map(index_path);
  std::set<std::string> parts;
  for (const auto& [tensor, part] : weight_map) {
    parts.insert(part);
  }
  require_parts(index_path, parts);
  std::map<std::string, std::size_t> index_of_part;
  std::vector<std::string> faults;
  for (const std::string& part : parts) {
    index_of_part.emplace(part, files_.size());
    files_.push_back(open_tensor_file(folder_ / part));
    for (const auto& [name, view] : files_.back().tensors()) {
      if (!weight_map.contains(name)) {
        faults.push_back(fmt::format("{} stands in {} but not in the index", name, part));
      }
    }
  }
  for (const auto& [name, part] : weight_map) {
    const std::size_t index = index_of_part.at(part);
    if (!files_[index].contains(name)) {
      faults.push_back(fmt::format("{} should stand in {} and does not", name, part));
    }
    file_index_.emplace(name, index);
  }
  if (!faults.empty()) {
    throw Error(ErrorKind::kModel,
                fmt::format("{} does not fit its file parts: {}\n"
                            "  Index and parts come from different saves: fetch the model again.",
                            index_path.string(),
                            list_some(faults)));
  }
}

std::vector<std::string> ModelWeights::names() const {
  std::vector<std::string> names;
  names.reserve(file_index_.size());
  for (const auto& [name, index] : file_index_) {
    names.push_back(name);
  }
  return names;
}

bool ModelWeights::contains(const std::string& name) const {
  return file_index_.contains(name);
}

const TensorView& ModelWeights::at(const std::string& name) const {
  if (const auto found = file_index_.find(name); found != file_index_.end()) {
    return files_[found->second].at(name);
  }
  const std::vector<std::string> near = nearest(name, names());
  throw Error(ErrorKind::kModel,
              fmt::format("the model in {} has no tensor \"{}\"\n  Nearest of its {} names: {}",
                          folder_.string(),
                          name,
                          file_index_.size(),
                          near.empty() ? "none is near" : join(near, ", ")));
}

const fs::path& ModelWeights::file_of(const std::string& name) const {
  (void)at(name);  // the same error for a name that is not there
  return files_[file_index_.at(name)].path();
}

}  // namespace zeroth::formats
