#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace zeroth::data {

enum class FileFormat {
  kJson,
  kJsonLines,
  kCsv,
  kPlainText
};  // by name; what a JSON file really holds is seen later

// One data file in memory.
struct DataFile {
  const std::filesystem::path* path = nullptr;  // the caller's
  FileFormat format = FileFormat::kJson;
  std::string content;

  [[nodiscard]] std::string_view text() const noexcept;  // without a byte order mark
};

// Unpacked where it is gzip's, whatever its name. kNotSupported for any format but .json, .jsonl,
// .csv and .txt, each also as .gz; kData for missing, empty, broken or UTF-16 files. `path` must
// outlive the result.
[[nodiscard]] DataFile open_data_file(const std::filesystem::path& path);

}  // namespace zeroth::data
