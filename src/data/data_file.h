#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace zeroth::data {

enum class FileFormat {
  kJson,
  kJsonLines,
  kPlainText
};  // by name; what a JSON file really holds is seen later

// One data file in memory.
struct DataFile {
  const std::filesystem::path* path = nullptr;  // the caller's
  FileFormat format = FileFormat::kJson;
  std::string content;

  [[nodiscard]] std::string_view text() const noexcept;  // without a byte order mark
};

// kNotSupported for any format but .json, .jsonl and .txt; kData for missing, empty, or UTF-16
// files. `path` must outlive the result.
[[nodiscard]] DataFile open_data_file(const std::filesystem::path& path);

}  // namespace zeroth::data
