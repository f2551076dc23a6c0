#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace zeroth::formats {

// A whole file mapped read-only, shared with every process that maps it too. A missing or
// unreadable file is an Error of kModel. Replacing the file by rename leaves the mapping as it is;
// cutting it short in place while it is mapped ends the process on the next access, as with every
// mapping.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  void unmap() noexcept;

  std::span<const std::byte> bytes_;
};

// For bytes of a MappedFile that have been read: their pages no longer count as this process's.
// Read once more, they come again.
void drop_pages(std::span<const std::byte> bytes) noexcept;

// Bytes of a MappedFile that are read soon: they come from the disk meanwhile.
void read_ahead(std::span<const std::byte> bytes) noexcept;

}  // namespace zeroth::formats
