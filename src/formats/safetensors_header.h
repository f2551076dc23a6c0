#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/dtype.h"

namespace zeroth::formats {

inline constexpr std::size_t kLengthBytes = 8;               // the u64 before the header
inline constexpr std::uint64_t kMaxHeaderBytes = 100000000;  // the reference reader's limit

struct HeaderEntry {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;  // within the buffer
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<HeaderEntry> entries;  // in buffer order, tiling the buffer exactly
  std::map<std::string, std::string> metadata;
  std::size_t buffer_begin = 0;  // within the file
};

// Reads and proves the header of a whole safetensors file: whatever this returns lies within
// `file`, and each entry's size is that of its shape and type. Errors are kFormat (kNotSupported
// for element types that the format knows and Zeroth does not), and name `source`.
[[nodiscard]] SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file,
                                                         const std::string& source);

// Product of `shape` and the element size; nullopt when it does not fit an int64.
[[nodiscard]] std::optional<std::uint64_t> bytes_of_shape(std::span<const std::int64_t> shape,
                                                          DType dtype) noexcept;

}  // namespace zeroth::formats
