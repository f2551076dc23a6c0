#pragma once

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "checkpoint/manifest.h"
#include "formats/checksum.h"
#include "formats/weights_writer.h"
#include <fmt/format.h>

// For tests: a small checkpoint as a run writes one, with every number known.
namespace zeroth::checkpoint::testing {

using formats::DType;

struct Kind {
  std::int64_t ranks = 1;
  bool adapter = true;
  DType result = DType::kF32;  // the master stands in a result of fp32
  bool only_weights = false;
};

inline std::vector<UnitEntry> small_units() {
  return {{.name = "embed", .parameters = {{.name = "embed.weight", .shape = {5, 3}}}},
          {.name = "frozen", .parameters = {}},
          {.name = "layer",
           .parameters = {{.name = "layer.up", .shape = {4, 3}},
                          {.name = "layer.norm", .shape = {7}}}}};
}

// Small enough for every type to hold it exactly.
inline float value_of(std::int64_t unit, const std::string& what, std::int64_t element) {
  const auto kind = static_cast<std::int64_t>(what == kMaster ? 0 : what.back() - '0' + 1);
  return static_cast<float>(unit * 64 + kind * 32 + element) * 0.5F;
}

inline std::vector<float> values_of(std::int64_t unit,
                                    const std::string& what,
                                    shard::Range range) {
  std::vector<float> values;
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    values.push_back(value_of(unit, what, i));
  }
  return values;
}

// The bytes of such numbers in any type; all of them are integers and halves below 256.
inline std::vector<std::byte> encoded(const std::vector<float>& values, DType dtype) {
  std::vector<std::byte> bytes;
  for (const float value : values) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    std::uint32_t out = bits;
    if (dtype == DType::kBF16) {
      out = bits >> 16;
    } else if (dtype == DType::kF16) {
      out = value == 0 ? 0 : ((bits >> 23) - 112) << 10 | (bits >> 13 & 0x3FF);
    }
    const auto* first = reinterpret_cast<const std::byte*>(&out);
    bytes.insert(bytes.end(), first, first + formats::element_bytes(dtype));
  }
  return bytes;
}

inline std::vector<std::string> kinds_of(const Kind& kind) {
  std::vector<std::string> kinds;
  if (!kind.only_weights && kind.result != DType::kF32) {
    kinds.emplace_back(kMaster);
  }
  if (!kind.only_weights) {
    kinds.push_back(moment_name(0));
    kinds.push_back(moment_name(1));
  }
  return kinds;
}

// Writes safetensors of tensors whose bytes it holds.
class Tensors {
 public:
  void add(const std::string& name,
           std::vector<std::int64_t> shape,
           const std::vector<float>& values,
           DType dtype = DType::kF32) {
    storage_.push_back(encoded(values, dtype));
    tensors_.push_back({.name = name,
                        .dtype = dtype,
                        .shape = std::move(shape),
                        .bytes = formats::ready(storage_.back())});
  }

  [[nodiscard]] const std::vector<formats::TensorToWrite>& list() const { return tensors_; }

  void write(const std::filesystem::path& path) const {
    formats::write_weights_file(path, tensors_);
  }

 private:
  std::vector<std::vector<std::byte>> storage_;  // moving an inner vector leaves its bytes in place
  std::vector<formats::TensorToWrite> tensors_;
};

inline std::string write_result(const std::filesystem::path& folder, const Kind& kind) {
  Tensors tensors;
  const std::vector<UnitEntry> units = small_units();
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    std::int64_t begin = 0;
    for (const ParameterEntry& parameter : units[unit].parameters) {
      const std::int64_t count = UnitEntry{.name = {}, .parameters = {parameter}}.numel();
      const auto values = values_of(
          static_cast<std::int64_t>(unit), kMaster, {.begin = begin, .end = begin + count});
      tensors.add((kind.adapter ? "base_model.model." : "") + parameter.name,
                  parameter.shape,
                  values,
                  kind.result);
      begin += count;
    }
  }
  const std::string name = kind.adapter ? "adapter_model.safetensors" : "model.safetensors";
  tensors.write(folder / name);
  return name;
}

inline void write_state_of(const std::filesystem::path& folder,
                           const Kind& kind,
                           std::int64_t rank,
                           Manifest& manifest) {
  Tensors tensors;
  const auto file = static_cast<std::int64_t>(manifest.files.size());
  for (std::size_t i = 0; i < manifest.units.size(); ++i) {
    const auto unit = static_cast<std::int64_t>(i);
    const std::int64_t numel = manifest.units[i].numel();
    const std::int64_t shard = (numel + kind.ranks - 1) / kind.ranks;
    const shard::Range own{.begin = std::min(numel, rank * shard),
                           .end = std::min(numel, (rank + 1) * shard)};
    for (const std::string& what : own.size() > 0 ? kinds_of(kind) : std::vector<std::string>{}) {
      const std::vector<float> values = values_of(unit, what, own);
      tensors.add(tensor_name(manifest.units[i].name, what, own.begin), {own.size()}, values);
      manifest.states.push_back(
          {.unit = unit,
           .what = what,
           .range = own,
           .file = file,
           .checksum = formats::checksum_of(std::as_bytes(std::span(values)))});
    }
  }
  tensors.write(folder / state_file(rank, kind.ranks));
  manifest.files.push_back(entry_of(folder, state_file(rank, kind.ranks)));
}

inline Manifest write_checkpoint(const std::filesystem::path& folder, const Kind& kind) {
  std::filesystem::create_directories(folder);
  Manifest manifest{.update = 20,
                    .ranks = kind.ranks,
                    .zero_stage = 2,
                    .adapter = kind.adapter,
                    .master_in_result = kind.result == DType::kF32,
                    .num_moments = 2,
                    .model_fingerprint = "0123456789abcdef",
                    .data_fingerprint = "fedcba9876543210-40",
                    .progress = Json::object(),
                    .settings = {{"learning_rate", 1e-3}, {"optim", "adamw_torch"}},
                    .units = small_units(),
                    .states = {},
                    .files = {}};
  manifest.files.push_back(entry_of(folder, write_result(folder, kind)));
  write_file_atomically(folder / "trainer_state.json", "{\"global_step\": 20}\n");
  manifest.files.push_back(entry_of(folder, "trainer_state.json"));
  if (!kind.only_weights) {
    manifest.progress = {{"updates", 20}, {"epoch", 1}, {"row", 8}};
    for (std::int64_t rank = 0; rank < kind.ranks; ++rank) {
      write_state_of(folder, kind, rank, manifest);
    }
  }
  write_manifest(folder, manifest);
  return manifest;
}

}  // namespace zeroth::checkpoint::testing
