#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "base/in_flight.h"
#include "offload/choose_io.h"
#include "offload/swap_file.h"

namespace zeroth::offload {

// Bytes that went from and to files.
struct Traffic {
  std::int64_t read = 0;
  std::int64_t written = 0;
};

// What one rank lets rest in a folder: a swap file that grows, and what moves its bytes. Belongs to
// one thread.
class SwapSpace {
 public:
  // kDisk if the folder or the I/O that is asked for cannot be used.
  SwapSpace(const std::filesystem::path& folder,
            const IoOptions& options,
            std::optional<IoKind> asked);

  // Where room for so many bytes begins: zeros, until they are written. kDisk if there is none.
  [[nodiscard]] std::int64_t take(std::int64_t bytes) { return file_.extend(bytes); }

  // Multiples of kAlignment, the address too.
  [[nodiscard]] InFlight read(std::int64_t offset, std::byte* memory, std::int64_t bytes);
  [[nodiscard]] InFlight write(std::int64_t offset, const std::byte* memory, std::int64_t bytes);

  [[nodiscard]] std::int64_t bytes() const noexcept { return file_.bytes(); }

  [[nodiscard]] const Traffic& traffic() const noexcept { return traffic_; }

  // "/scratch (io_uring, 128 requests deep, past the page cache)"
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  SwapFile file_;
  ChosenIo io_;
  std::string text_;
  Traffic traffic_;
};

}  // namespace zeroth::offload
