#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/manifest.h"
#include "formats/safetensors.h"

namespace zeroth::checkpoint {

// Reads state of a checkpoint's units, any stretch of it, whoever wrote it. A tensor of the state
// is proved against its checksum when the first part of it is read.
class StateReader {
 public:
  // Opens nothing yet. `manifest` must outlive the reader.
  StateReader(std::filesystem::path folder, const Manifest& manifest);

  // That every tensor is there: kModel names the first that is not. Before the checksums, which
  // name a file alone.
  void require_tensors();

  // What read() will need of the state: it comes from the disk meanwhile.
  void read_ahead(std::int64_t unit, const std::string& what, shard::Range range);

  // Elements [range.begin, range.end) of one kind of state of unit `unit`. kCheckpoint where the
  // checkpoint does not hold all of them.
  void read(std::int64_t unit,
            const std::string& what,
            shard::Range range,
            std::span<float> values);

 private:
  using Kind = std::pair<std::int64_t, std::string>;  // a unit and what

  [[nodiscard]] std::int64_t copy_from_states(std::int64_t unit,
                                              const std::string& what,
                                              shard::Range range,
                                              std::span<float> values);
  [[nodiscard]] std::int64_t copy_from_result(std::int64_t unit,
                                              shard::Range range,
                                              std::span<float> values);
  [[nodiscard]] const formats::TensorView& tensor_of(const StateEntry& state);
  [[nodiscard]] const formats::TensorView& proved(const StateEntry& state);
  [[nodiscard]] const formats::SafetensorsFile& file(const std::string& name);
  [[nodiscard]] const formats::TensorView& result_tensor(const std::string& parameter);

  std::filesystem::path folder_;
  const Manifest& manifest_;
  std::map<Kind, std::vector<const StateEntry*>> states_;
  std::set<const StateEntry*> proved_;
  std::map<std::string, formats::SafetensorsFile> files_;
  std::unique_ptr<formats::ModelWeights> model_;
};

enum class Proof {
  kAll,         // every file
  kForReading,  // but for state, which a StateReader proves, and weights that it does not read
};

// Proves that the files are those that the manifest lists, byte for byte, where a byte decides
// something: every `of`-th of them, beginning with number `part`, so that several ranks share the
// reading. kCheckpoint, naming the file.
void verify_files(const std::filesystem::path& folder,
                  const Manifest& manifest,
                  std::int64_t part = 0,
                  std::int64_t of = 1,
                  Proof proof = Proof::kAll);

}  // namespace zeroth::checkpoint
