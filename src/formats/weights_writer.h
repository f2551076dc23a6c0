#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "formats/model_config.h"
#include "formats/safetensors.h"

// How result weights are written: names and layout as Transformers saves them, bytes that depend on
// the weights alone, and a checksum of the content in each file's metadata.
namespace zeroth::formats {

inline constexpr const char* kChecksumKey = "zeroth_xxh3";
inline constexpr std::uint64_t kMaxFileBytes = 5'000'000'000;  // Transformers' "5GB"

// XXH3-64 in hex over each tensor's name, type, shape and bytes, in the order they are written in;
// the order given does not matter. The second form is what a file holds, to be compared with its
// metadata (formats/verify_content.h).
[[nodiscard]] std::string content_checksum(std::vector<TensorToWrite> tensors);
[[nodiscard]] std::string content_checksum(const TensorFile& file);

// One file with the metadata {"format": "pt", kChecksumKey: content_checksum}: an adapter's, for
// example.
void write_weights_file(const std::filesystem::path& path,
                        const std::vector<TensorToWrite>& tensors);

// Writes model.safetensors, or, when that would hold more than `max_file_bytes` of tensors, file
// parts in the given order and model.safetensors.index.json. Weights of an earlier save in `folder`
// that readers would take for these are removed once the new ones stand. Returns the files written.
std::vector<std::filesystem::path> write_model_weights(
    const std::filesystem::path& folder,
    const std::vector<TensorToWrite>& tensors,
    std::uint64_t max_file_bytes = kMaxFileBytes);

// What the other ranks do while one writes, where a tensor's bytes are made by all ranks together:
// asks for each tensor's bytes in the order in which write_weights_file, or write_model_weights
// with the same limit, asks for them, and keeps none.
void walk_weights_file(std::vector<TensorToWrite> tensors);
void walk_model_weights(const std::vector<TensorToWrite>& tensors,
                        std::uint64_t max_file_bytes = kMaxFileBytes);

// Writes `folder`/config.json: the file that `config` was read from, with its stored type
// (torch_dtype or dtype, as the file spells it) set to `dtype`.
void copy_config(const ModelConfig& config, DType dtype, const std::filesystem::path& folder);

}  // namespace zeroth::formats
