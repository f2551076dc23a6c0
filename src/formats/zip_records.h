#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace zeroth::formats {

// Where a file lies within an archive, as it is, byte for byte.
struct ZipRecord {
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
};

// The files of a ZIP archive (PKWARE's APPNOTE, with its 64-bit sizes) that keeps them as they are,
// by name. kFormat where it is damaged or a file in it is compressed or encrypted.
[[nodiscard]] std::map<std::string, ZipRecord> zip_records(const std::filesystem::path& path);

}  // namespace zeroth::formats
