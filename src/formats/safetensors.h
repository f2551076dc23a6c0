#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/dtype.h"
#include "formats/tensor_file.h"

// The safetensors format (https://github.com/huggingface/safetensors, "Format"): 8 bytes of
// little-endian header length, a JSON header, one buffer. Any fault of header, size or range is an
// Error of kFormat that names the file, the tensor and the numbers; a missing file is kModel.
namespace zeroth::formats {

class SafetensorsFile : public TensorFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);
};

// Gives a tensor's bytes when its turn comes in the file; they must stay until the next tensor is
// asked for. So a writer needs one tensor at a time in memory.
using TensorBytes = std::function<std::span<const std::byte>()>;

struct TensorToWrite {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  TensorBytes bytes;
};

// Bytes that are there already and live until the tensor is written.
[[nodiscard]] TensorBytes ready(std::span<const std::byte> bytes);
// The entry of a tensor that was read.
[[nodiscard]] TensorToWrite to_write(const std::string& name, const TensorView& view);

// How many bytes a tensor of its type and shape takes.
[[nodiscard]] std::uint64_t size_to_write(const TensorToWrite& tensor);
// The order in which write_safetensors writes.
void sort_as_written(std::vector<TensorToWrite>& tensors);

// Writes the tensors sorted as the reference writer does (dtype size descending, then name), header
// padded to 8 bytes, through a temporary file and rename. The result depends on the arguments
// alone. Where `checksum_key` is given, the metadata gets it as well: the ContentChecksum of the
// tensors, taken while they pass.
void write_safetensors(const std::filesystem::path& path,
                       std::vector<TensorToWrite> tensors,
                       std::map<std::string, std::string> metadata,
                       const std::string& checksum_key = "");

// In the format that the name says: ".bin" is torch.save's, any other safetensors.
[[nodiscard]] TensorFile open_tensor_file(const std::filesystem::path& path);

// The weights of a model folder, in the order in which Transformers looks for them:
// `model.safetensors`, the file parts named by `model.safetensors.index.json`, `pytorch_model.bin`,
// and the parts that `pytorch_model.bin.index.json` names. Other forms are refused by name.
class ModelWeights {
 public:
  explicit ModelWeights(const std::filesystem::path& folder);

  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }

  [[nodiscard]] const std::vector<TensorFile>& files() const noexcept { return files_; }

  [[nodiscard]] std::vector<std::string> names() const;  // sorted
  [[nodiscard]] bool contains(const std::string& name) const;
  // kModel if absent, naming the folder and the nearest names.
  [[nodiscard]] const TensorView& at(const std::string& name) const;
  // The file the tensor stands in, for messages.
  [[nodiscard]] const std::filesystem::path& file_of(const std::string& name) const;

 private:
  void open_single(const std::filesystem::path& path);
  void open_parts(const std::filesystem::path& index_path);

  std::filesystem::path folder_;
  std::vector<TensorFile> files_;
  std::map<std::string, std::size_t> file_index_;
};

}  // namespace zeroth::formats
