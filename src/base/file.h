#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

// Whole files, and files that appear whole. Errors are ErrorKind::kDisk unless said otherwise.
namespace zeroth {

// The content of `path`. A missing or unreadable file is an Error of kind `missing_kind`, so that a
// missing data file is a data error and a missing model file a model error.
[[nodiscard]] std::string read_file(const std::filesystem::path& path, ErrorKind missing_kind);

// A file that appears whole, written piece by piece: the bytes go to a file beside `path`, which
// publish() syncs and renames to `path`. Without publish() `path` stays as it was and the file
// beside it goes.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void append(std::span<const std::byte> bytes);
  void overwrite(std::uint64_t offset, std::span<const std::byte> bytes);  // what was appended
  void publish();

 private:
  void sync_folder() const;

  std::filesystem::path final_path_;
  std::string path_;
  int descriptor_;
  std::int64_t appended_ = 0;  // bytes
  std::int64_t started_ = 0;   // of them on their way to the disk
};

// Writes to a file beside `path`, syncs it, and renames it to `path`: a reader sees the old content
// or the new, never a part. On failure `path` is as before and the file beside it is gone.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

}  // namespace zeroth
