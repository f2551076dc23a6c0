#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "checkpoint/folder.h"
#include "checkpoint/manifest.h"
#include "formats/safetensors.h"

// What zeroth inspect reads of a path. What is damaged is noted and the rest read all the same.
namespace zeroth::cli {

enum class Holding { kModel, kAdapter, kCheckpoint, kOutput, kFile };

[[nodiscard]] const char* name_of(Holding kind);  // "model", "adapter", ...

enum class FileOutcome { kVerified, kDamaged, kMissing, kNoChecksum };

[[nodiscard]] const char* name_of(FileOutcome outcome);  // "verified", ..., "none in the file"

struct InspectedFile {
  std::string name;
  std::int64_t bytes = 0;
  FileOutcome outcome = FileOutcome::kNoChecksum;
  std::string fault;  // what is wrong with it; empty: nothing that could be seen

  [[nodiscard]] bool is_sound() const { return fault.empty(); }
};

struct InspectedTensor {
  const formats::TensorView* view = nullptr;  // of one of the opened files
  std::string file;

  [[nodiscard]] std::int64_t elements() const;
};

struct Inspected {
  std::filesystem::path path;
  Holding kind = Holding::kFile;
  std::vector<InspectedFile> files;
  std::vector<formats::TensorFile> opened;
  std::map<std::string, InspectedTensor> tensors;  // weights, not the optimizer's state
  Json settings = Json::object();  // of a checkpoint its run's; else those in `config`
  Json config = Json::object();    // adapter_config.json or config.json
  std::optional<checkpoint::Manifest> manifest;
  std::vector<checkpoint::Found> checkpoints;  // of an output folder; their files are not read
  std::string latest;                          // what its file `latest` names
  std::vector<std::string> faults;             // beyond those of single files

  [[nodiscard]] bool is_sound() const;
};

// A model folder, an adapter, a checkpoint, the output folder of a run, or a safetensors file.
// Every byte that a checksum covers is read. kModel where the path is nothing of these.
[[nodiscard]] Inspected inspect(const std::filesystem::path& path);

}  // namespace zeroth::cli
