#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "shard/flat_layout.h"

// What a checkpoint folder holds, told by its checkpoint.json, which is written last. Next to it
// stand the run's result as other tools read it (an adapter, or a model's weights), the tokenizer's
// files, and in state-RRRRR-of-WWWWW.safetensors the optimizer's numbers, a file for each rank.
//
// State is kept by unit: a stretch of the unit's trainable parameters laid end to end, which is the
// same for any number of ranks but for the padding behind it, and padding is not kept. So any
// number of ranks at any stage finds its part.
namespace zeroth::checkpoint {

inline constexpr auto kManifestFile = "checkpoint.json";
inline constexpr std::int64_t kLayoutVersion = 1;

// The kinds of state. Moments are counted as the optimizer has them: Adam's second is "moment_1".
inline constexpr auto kMaster = "master";
[[nodiscard]] std::string moment_name(int index);

struct FileEntry {
  std::string name;
  std::int64_t bytes = 0;
  std::string checksum;  // XXH3-64 in hex; of safetensors the content's, of others the bytes'

  bool operator==(const FileEntry&) const = default;
};

struct ParameterEntry {
  std::string name;
  std::vector<std::int64_t> shape;

  bool operator==(const ParameterEntry&) const = default;
};

// Trainable parameters, in the order in which they are laid end to end.
struct UnitEntry {
  std::string name;
  std::vector<ParameterEntry> parameters;

  [[nodiscard]] std::int64_t numel() const;

  bool operator==(const UnitEntry&) const = default;
};

// A stretch of a unit's state: a tensor of fp32 in a file of the checkpoint.
struct StateEntry {
  std::int64_t unit = 0;  // index
  std::string what;
  shard::Range range;
  std::int64_t file = 0;  // index
  std::string checksum;   // XXH3-64 of its bytes: whoever needs a part proves this tensor alone

  bool operator==(const StateEntry&) const = default;
};

// A rank's file, and whether a file is one.
[[nodiscard]] std::string state_file(std::int64_t rank, std::int64_t ranks);
[[nodiscard]] bool is_state_file(std::string_view name);

// Names of the files in `folder` that a rank answers for: its own state, and for rank 0 all that is
// no rank's state. Others may still be writing theirs, under a temporary name: it is not looked at.
[[nodiscard]] std::vector<std::string> files_of_rank(const std::filesystem::path& folder,
                                                     std::int64_t rank,
                                                     std::int64_t ranks);

[[nodiscard]] std::string tensor_name(const std::string& unit,
                                      const std::string& what,
                                      std::int64_t begin);

struct Manifest {
  std::int64_t update = 0;
  std::int64_t ranks = 1;
  std::int64_t zero_stage = 0;
  bool adapter = false;           // the result is an adapter; else a whole model
  bool master_in_result = false;  // fp32 weights stand in the result, not in the state
  int num_moments = 0;
  std::string model_fingerprint;  // of the model that the run began with
  std::string data_fingerprint;
  Json progress = Json::object();  // the trainer's; empty: weights alone
  Json settings = Json::object();
  std::vector<UnitEntry> units;
  std::vector<StateEntry> states;
  std::vector<FileEntry> files;

  [[nodiscard]] bool only_weights() const { return progress.empty(); }

  bool operator==(const Manifest&) const = default;
};

// Files of `folder` as they stand there now, but for their content: a file is read for its checksum
// only where it does not bring one. kDisk.
[[nodiscard]] FileEntry entry_of(const std::filesystem::path& folder, const std::string& name);

// With a checksum of its own.
void write_manifest(const std::filesystem::path& folder, const Manifest& manifest);

// kCheckpoint where it is missing, damaged, edited by hand, or of another layout.
[[nodiscard]] Manifest read_manifest(const std::filesystem::path& folder);

}  // namespace zeroth::checkpoint
