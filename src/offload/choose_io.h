#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "offload/file_io.h"

namespace zeroth::offload {

enum class IoKind { kThreads, kUring };

struct DiskSpeed {
  double read_bytes_per_s = 0;
  double write_bytes_per_s = 0;
};

struct ChosenIo {
  std::unique_ptr<FileIo> io;
  DiskSpeed speed;   // measured; zeros where the kind was asked for
  std::string text;  // "io_uring, 32 requests deep (1.9 GB/s read, 2.3 GB/s write), past the cache"
};

// Writes and reads `bytes`, or less where the disk is nearly full, in `folder` with each kind and
// takes the one that needed less time; the asked one without a look at the other. kDisk if the
// folder or the asked kind cannot be used.
[[nodiscard]] ChosenIo choose_io(const std::filesystem::path& folder,
                                 const IoOptions& options,
                                 std::optional<IoKind> asked,
                                 std::int64_t bytes = std::int64_t{64} << 20);

// How fast `io` moves `bytes` to and from a file in `folder`.
[[nodiscard]] DiskSpeed measure(FileIo& io,
                                const std::filesystem::path& folder,
                                std::int64_t bytes);

}  // namespace zeroth::offload
