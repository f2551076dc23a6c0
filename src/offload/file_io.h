#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/in_flight.h"
#include "offload/io_options.h"
#include "offload/swap_file.h"

// Reading and writing swap files while the caller computes.
namespace zeroth::offload {

// Bytes of a file and where they are in memory. All three numbers and the address are multiples of
// kAlignment: direct I/O wants that.
struct Transfer {
  const SwapFile* file = nullptr;
  std::int64_t offset = 0;
  std::byte* memory = nullptr;
  std::int64_t bytes = 0;
};

// Belongs to one thread.
class FileIo {
 public:
  virtual ~FileIo() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual InFlight read(const Transfer& transfer) = 0;
  [[nodiscard]] virtual InFlight write(const Transfer& transfer) = 0;
};

// pread and pwrite by threads of its own.
[[nodiscard]] std::unique_ptr<FileIo> make_thread_io(const IoOptions& options);
// nullptr where the kernel has no io_uring or forbids it.
[[nodiscard]] std::unique_ptr<FileIo> make_uring_io(const IoOptions& options);

}  // namespace zeroth::offload
