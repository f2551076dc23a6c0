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

// While it lives, pages of these bytes of a MappedFile are read one by one as they are touched,
// without the megabytes around them that the system reads ahead.
class PickedPages {
 public:
  explicit PickedPages(std::span<const std::byte> bytes) noexcept;
  ~PickedPages();
  PickedPages(const PickedPages&) = delete;
  PickedPages& operator=(const PickedPages&) = delete;

 private:
  std::span<const std::byte> bytes_;
};

// Bytes of a MappedFile that are read soon: they come from the disk meanwhile.
void read_ahead(std::span<const std::byte> bytes) noexcept;

}  // namespace zeroth::formats
