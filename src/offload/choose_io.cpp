#include "offload/choose_io.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "base/error.h"
#include "offload/pages.h"
#include <fmt/format.h>

namespace zeroth::offload {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kPart = std::int64_t{8} << 20;  // moved at one time, as sub-groups are

template <typename Move>
double bytes_per_second(std::int64_t bytes, const Move& move) {
  const Clock::time_point start = Clock::now();
  move();
  return static_cast<double>(bytes) / std::chrono::duration<double>(Clock::now() - start).count();
}

double seconds_of_both(const DiskSpeed& speed) {
  return 1 / speed.read_bytes_per_s + 1 / speed.write_bytes_per_s;
}

std::string text_of(const FileIo& io, const DiskSpeed& speed, const std::filesystem::path& folder) {
  const SwapFile file(folder, 0);
  constexpr double kGB = 1e9;
  const std::string measured = speed.read_bytes_per_s > 0
                                   ? fmt::format(" ({:.1f} GB/s read, {:.1f} GB/s written)",
                                                 speed.read_bytes_per_s / kGB,
                                                 speed.write_bytes_per_s / kGB)
                                   : "";
  return fmt::format("{}{}, {}",
                     io.name(),
                     measured,
                     file.is_direct()
                         ? "past the page cache"
                         : "through the page cache: the file system has no direct I/O");
}

ChosenIo chosen(std::unique_ptr<FileIo> io,
                const DiskSpeed& speed,
                const std::filesystem::path& folder) {
  std::string text = text_of(*io, speed, folder);
  return {std::move(io), speed, std::move(text)};
}

ChosenIo as_asked(IoKind kind, const IoOptions& options, const std::filesystem::path& folder) {
  auto io = kind == IoKind::kUring ? make_uring_io(options) : make_thread_io(options);
  if (io == nullptr) {
    throw Error(ErrorKind::kDisk,
                "this kernel has no io_uring, or forbids it\n  Leave the choice to zeroth, or ask "
                "for threads.");
  }
  return chosen(std::move(io), {}, folder);
}

// A small part of what is left on the disk, which others need as well.
std::int64_t room_to_try(const std::filesystem::path& folder) {
  constexpr std::int64_t kShares = 8;
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  return error ? kAlignment : static_cast<std::int64_t>(space.available) / kShares;
}

}  // namespace

DiskSpeed measure(FileIo& io, const std::filesystem::path& folder, std::int64_t bytes) {
  const std::int64_t whole = std::max(aligned_up(bytes), kAlignment);
  const SwapFile file(folder, whole);
  const Pages buffer(whole);
  const auto move_all = [&](const auto& start) {
    std::vector<InFlight> tickets;
    for (std::int64_t begin = 0; begin < whole; begin += kPart) {
      tickets.push_back(
          start(Transfer{&file, begin, buffer.data() + begin, std::min(kPart, whole - begin)}));
    }
    for (InFlight& ticket : tickets) {
      ticket.wait();
    }
  };
  DiskSpeed speed;
  speed.write_bytes_per_s = bytes_per_second(
      whole, [&] { move_all([&](const Transfer& part) { return io.write(part); }); });
  speed.read_bytes_per_s = bytes_per_second(
      whole, [&] { move_all([&](const Transfer& part) { return io.read(part); }); });
  return speed;
}

ChosenIo choose_io(const std::filesystem::path& folder,
                   const IoOptions& options,
                   std::optional<IoKind> asked,
                   std::int64_t bytes) {
  if (asked) {
    return as_asked(*asked, options, folder);
  }
  bytes = std::min(bytes, room_to_try(folder));
  auto threads = make_thread_io(options);
  const DiskSpeed of_threads = measure(*threads, folder, bytes);
  auto uring = make_uring_io(options);
  if (uring == nullptr) {
    return chosen(std::move(threads), of_threads, folder);
  }
  const DiskSpeed of_uring = measure(*uring, folder, bytes);
  return seconds_of_both(of_uring) < seconds_of_both(of_threads)
             ? chosen(std::move(uring), of_uring, folder)
             : chosen(std::move(threads), of_threads, folder);
}

}  // namespace zeroth::offload
