#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"

// Whole files, and files that appear whole. Errors are ErrorKind::kDisk unless said otherwise.
namespace zeroth {

// The content of `path`. A missing or unreadable file is an Error of kind `missing_kind`, so that a
// missing data file is a data error and a missing model file a model error.
[[nodiscard]] std::string read_file(const std::filesystem::path& path, ErrorKind missing_kind);

// Writes to a file beside `path`, syncs it, and renames it to `path`: a reader sees the old content
// or the new, never a part. On failure `path` is as before and the file beside it is gone.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

}  // namespace zeroth
