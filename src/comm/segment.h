#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "comm/control_block.h"

// The memory that ranks of one host share: one file without a name that grows by buffers. It lives
// as long as a process has it open.
namespace zeroth::comm {

// A part of the segment in this process's address space.
class Mapping {
 public:
  Mapping(int file, std::uint64_t offset, std::size_t bytes);
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

class Segment {
 public:
  // In /dev/shm, for processes; or anonymous, for the threads of one process.
  [[nodiscard]] static std::shared_ptr<Segment> create_shared(int size);
  [[nodiscard]] static std::shared_ptr<Segment> create_in_process(int size);
  // Takes over a descriptor of a segment that another process created for `size` ranks.
  [[nodiscard]] static std::shared_ptr<Segment> open(int file, int size);

  Segment(int file, int size, bool creator);
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment();

  [[nodiscard]] int file() const noexcept { return file_; }

  [[nodiscard]] int size() const noexcept { return size_; }

  [[nodiscard]] ControlHeader& header() const noexcept;
  [[nodiscard]] RankSlot& slot(int rank) const noexcept;
  [[nodiscard]] Channel& channel(int from, int to) const noexcept;

  // Room for the pieces that a rank shows to all, kWindowPieces at a time, and for those that it
  // sends to one other, two at a time.
  [[nodiscard]] std::byte* window(int rank, std::uint64_t piece) const noexcept;
  [[nodiscard]] std::byte* channel_window(int from, int to, std::uint64_t piece) const noexcept;
  [[nodiscard]] static std::size_t window_bytes() noexcept;

  [[nodiscard]] std::size_t channel_bytes() const noexcept { return channel_bytes_; }

  // Windows take memory when they are first written; the writer calls this before.
  void commit_window(int rank);
  void commit_channel(int from, int to);

  [[nodiscard]] std::uint64_t buffers_begin() const noexcept { return buffers_begin_; }

  // Makes the file reach to `end`; kMemory if the file system has no room for `bytes` more.
  void grow(std::uint64_t end, std::uint64_t bytes);
  // Gives memory to a range, so that touching it later cannot fail (SIGBUS).
  void commit(std::uint64_t offset, std::uint64_t bytes);
  void release(std::uint64_t offset, std::uint64_t bytes) noexcept;
  // Ranks that are threads share a mapping.
  [[nodiscard]] std::shared_ptr<Mapping> map(std::uint64_t offset, std::size_t bytes);

  struct View {
    std::shared_ptr<Mapping> mapping;  // keeps data alive
    const std::byte* data = nullptr;
  };

  // Any place of the buffers, through a mapping that is there already if one holds it.
  [[nodiscard]] View view(std::uint64_t offset, std::size_t bytes);
  // Where memory of this process lies in the segment; kPrivateSource if it does not.
  [[nodiscard]] std::uint64_t place_of(const std::byte* data, std::size_t bytes);

 private:
  int file_;
  int size_;
  std::size_t channel_bytes_;
  std::uint64_t channels_begin_ = 0;
  std::uint64_t windows_begin_ = 0;
  std::uint64_t channel_windows_begin_ = 0;
  std::uint64_t buffers_begin_ = 0;
  std::byte* control_ = nullptr;  // everything before the buffers
  std::mutex mutex_;
  std::map<std::uint64_t, std::weak_ptr<Mapping>> mappings_;  // by offset
};

}  // namespace zeroth::comm
