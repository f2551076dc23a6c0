#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <system_error>

#include "base/error.h"

namespace zeroth {

// Without this a crash of the machine could forget a rename in the folder, or its new entries.
[[nodiscard]] std::error_code sync_folder(const std::filesystem::path& folder) noexcept;

// A file that appears whole, written piece by piece: the bytes go to a file beside `path`, which
// publish() syncs and renames to `path`. Without publish() `path` stays as it was and the file
// beside it goes. A large one is written while its next piece is made, past the page cache where
// the file system allows: a checkpoint is not read again soon, and would push out what is.
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
  struct Block {  // aligned for direct transfers
    std::unique_ptr<std::byte, void (*)(void*)> bytes{nullptr, std::free};
    std::size_t used = 0;
  };

  void write_block();
  void wait_for_block();
  void write_at(std::int64_t offset, std::span<const std::byte> bytes, int descriptor) const;

  std::filesystem::path final_path_;
  std::string path_;
  int descriptor_;
  int direct_ = -1;  // the same file, past the page cache; -1: not open, or not possible
  std::array<Block, 2> blocks_;
  std::size_t filling_ = 0;   // the block that append() fills
  std::int64_t written_ = 0;  // bytes before that block
  std::future<void> writing_;
};

}  // namespace zeroth
