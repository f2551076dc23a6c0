#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace zeroth::offload {

// Addresses, offsets and sizes of direct I/O: a page, which every file system here accepts.
inline constexpr std::int64_t kAlignment = 4096;

[[nodiscard]] constexpr std::int64_t aligned_up(std::int64_t bytes) noexcept {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// A file without a name, of this process alone: it goes with the process, however that ends, nobody
// can remove it or confuse it with another run's, and its room is taken when it is made.
class SwapFile {
 public:
  // kDisk if `folder` is none, cannot be written, or lacks the room, with how much there is.
  SwapFile(const std::filesystem::path& folder, std::int64_t bytes);
  SwapFile(SwapFile&& other) noexcept;
  SwapFile& operator=(SwapFile&&) = delete;
  ~SwapFile();

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }

  // Room for so many bytes more, which read as zeros until they are written; where they begin.
  // kDisk as above.
  [[nodiscard]] std::int64_t extend(std::int64_t bytes);

  // Past the page cache; false where the file system does not do that.
  [[nodiscard]] bool is_direct() const noexcept { return direct_; }

  // "the swap file in /scratch"
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::filesystem::path folder_;
  std::string text_;
  std::int64_t bytes_ = 0;
  bool direct_ = false;
  int descriptor_ = -1;
};

}  // namespace zeroth::offload
