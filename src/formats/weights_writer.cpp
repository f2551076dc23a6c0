#include "formats/weights_writer.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <system_error>

#include "base/check.h"
#include "base/file.h"
#include "formats/content_checksum.h"
#include "formats/mapped_file.h"
#include <fmt/format.h>

namespace zeroth::formats {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr std::string_view kStagedEnding = ".new";

using Part = std::vector<TensorToWrite>;

// Greedy in the given order, as Transformers cuts; a tensor larger than the limit gets a file of
// its own.
std::vector<Part> cut_into_parts(const std::vector<TensorToWrite>& tensors,
                                 std::uint64_t max_file_bytes) {
  std::vector<Part> parts(1);
  std::uint64_t part_bytes = 0;
  for (const TensorToWrite& tensor : tensors) {
    const std::uint64_t bytes = size_to_write(tensor);
    if (!parts.back().empty() && part_bytes + bytes > max_file_bytes) {
      parts.emplace_back();
      part_bytes = 0;
    }
    parts.back().push_back(tensor);
    part_bytes += bytes;
  }
  return parts;
}

std::string part_name(std::size_t index, std::size_t count) {
  return fmt::format("model-{:05}-of-{:05}.safetensors", index + 1, count);
}

std::string index_text(const std::vector<Part>& parts) {
  std::map<std::string, std::string> weight_map;
  std::uint64_t total_size = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (const TensorToWrite& tensor : parts[i]) {
      const bool is_new = weight_map.emplace(tensor.name, part_name(i, parts.size())).second;
      ZEROTH_CHECK(is_new, "tensor {} is given twice", tensor.name);
      total_size += size_to_write(tensor);
    }
  }
  const nlohmann::json index{{"metadata", {{"total_size", total_size}}},
                             {"weight_map", weight_map}};
  return index.dump(2) + "\n";
}

std::string staged_name(const std::string& name) {
  return name + std::string(kStagedEnding);
}

// Parts are written under names that no reader takes and renamed together at the end, so that a
// write that fails half-way leaves an earlier save of as many parts as it was.
class StagedParts {
 public:
  explicit StagedParts(fs::path folder) : folder_(std::move(folder)) {}

  StagedParts(const StagedParts&) = delete;
  StagedParts& operator=(const StagedParts&) = delete;

  ~StagedParts() {
    std::error_code ignored;  // what is left over is harmless, and a destructor may not throw
    for (const std::string& name : names_) {
      fs::remove(folder_ / staged_name(name), ignored);
    }
  }

  void write(const std::string& name, const Part& part) {
    write_weights_file(folder_ / staged_name(name), part);
    names_.push_back(name);
  }

  void publish() {
    for (const std::string& name : names_) {
      std::error_code code;
      fs::rename(folder_ / staged_name(name), folder_ / name, code);
      if (code) {
        throw Error(ErrorKind::kDisk,
                    fmt::format("cannot finish {}: {}", (folder_ / name).string(), code.message()));
      }
    }
    names_.clear();
  }

 private:
  fs::path folder_;
  std::vector<std::string> names_;
};

std::vector<fs::path> write_parts(const fs::path& folder, const std::vector<Part>& parts) {
  StagedParts staged(folder);
  std::vector<fs::path> files;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    staged.write(part_name(i, parts.size()), parts[i]);
    files.push_back(folder / part_name(i, parts.size()));
  }
  staged.publish();
  write_file_atomically(folder / kIndexFile, index_text(parts));
  files.push_back(folder / kIndexFile);
  return files;
}

// "model-00001-of-00002.safetensors" with any digits, finished or staged.
bool is_part_name(std::string_view name) {
  if (name.ends_with(kStagedEnding)) {
    name.remove_suffix(kStagedEnding.size());
  }
  constexpr std::string_view kPattern = "model-00000-of-00000.safetensors";
  return name.size() == kPattern.size() &&
         std::equal(name.begin(), name.end(), kPattern.begin(), [](char c, char pattern) {
           return pattern == '0' ? c >= '0' && c <= '9' : c == pattern;
         });
}

bool is_model_weights(std::string_view name) {
  return name == kSingleFile || name == kIndexFile || is_part_name(name);
}

// A model.safetensors of an earlier save would win over a new index, and the other way round would
// confuse.
void remove_earlier(const fs::path& folder, const std::vector<fs::path>& written) {
  std::vector<fs::path> earlier;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const bool is_new = std::find(written.begin(), written.end(), entry.path()) != written.end();
    if (!is_new && is_model_weights(entry.path().filename().string())) {
      earlier.push_back(entry.path());
    }
  }
  for (const fs::path& path : earlier) {
    std::error_code code;
    if (!fs::remove(path, code) && code) {
      throw Error(ErrorKind::kDisk,
                  fmt::format("cannot remove {} of an earlier save: {}\n"
                              "  Remove it by hand: readers would take it for the new weights.",
                              path.string(),
                              code.message()));
    }
  }
}

}  // namespace

std::string content_checksum(std::vector<TensorToWrite> tensors) {
  sort_as_written(tensors);
  ContentChecksum checksum;
  for (const TensorToWrite& tensor : tensors) {
    checksum.add(tensor, tensor.bytes());
  }
  return checksum.hex();
}

std::string content_checksum(const TensorFile& file) {
  std::vector<TensorToWrite> tensors;
  for (const auto& [name, view] : file.tensors()) {
    tensors.push_back(to_write(name, view));
  }
  sort_as_written(tensors);
  ContentChecksum checksum;
  for (const TensorToWrite& tensor : tensors) {
    const std::span<const std::byte> bytes = tensor.bytes();
    checksum.add(tensor, bytes);
    drop_pages(bytes);  // a file may be larger than the memory that a rank counts as its own
  }
  return checksum.hex();
}

void write_weights_file(const fs::path& path, const std::vector<TensorToWrite>& tensors) {
  write_safetensors(path, tensors, {{"format", "pt"}}, kChecksumKey);
}

void walk_weights_file(std::vector<TensorToWrite> tensors) {
  sort_as_written(tensors);
  for (const TensorToWrite& tensor : tensors) {
    (void)tensor.bytes();
  }
}

std::vector<fs::path> write_model_weights(const fs::path& folder,
                                          const std::vector<TensorToWrite>& tensors,
                                          std::uint64_t max_file_bytes) {
  ZEROTH_CHECK(max_file_bytes > 0, "a file part must be allowed to hold something");
  const std::vector<Part> parts = cut_into_parts(tensors, max_file_bytes);
  std::vector<fs::path> files{folder / kSingleFile};
  if (parts.size() == 1) {
    write_weights_file(files.front(), parts.front());
  } else {
    files = write_parts(folder, parts);
  }
  remove_earlier(folder, files);
  return files;
}

void walk_model_weights(const std::vector<TensorToWrite>& tensors, std::uint64_t max_file_bytes) {
  for (Part& part : cut_into_parts(tensors, max_file_bytes)) {
    walk_weights_file(std::move(part));
  }
}

void copy_config(const ModelConfig& config, DType dtype, const fs::path& folder) {
  Json json = config.raw;
  const std::string name(torch_dtype_name(dtype));
  if (json.contains("dtype")) {
    json["dtype"] = name;
  }
  if (json.contains("torch_dtype") || !json.contains("dtype")) {
    json["torch_dtype"] = name;
  }
  write_file_atomically(folder / "config.json", json.dump(2) + "\n");
}

}  // namespace zeroth::formats
