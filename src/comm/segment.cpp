#include "comm/segment.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <utility>

#include "base/error.h"
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace zeroth::comm {
namespace {

constexpr std::size_t kWindowPiece = std::size_t{512} << 10;
constexpr std::size_t kAllChannels = std::size_t{4} << 20;  // what all channel windows share

std::uint64_t to_page(std::uint64_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

// Half of a channel's window: smaller the more ranks there are, whole pages.
std::size_t channel_half(int size) {
  const auto pairs = static_cast<std::size_t>(size) * static_cast<std::size_t>(size);
  return std::clamp(kAllChannels / pairs / kPage * kPage, kPage, std::size_t{128} << 10);
}

// What the kernel could still give without swapping.
std::uint64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string name;
    std::uint64_t kilobytes = 0;
    if (fields >> name >> kilobytes && name == "MemAvailable:") {
      return kilobytes * 1024;
    }
  }
  return ~std::uint64_t{0};
}

// A file system that states no size is limited by the machine alone.
std::uint64_t available_in(int file) {
  struct statvfs room {};

  const std::uint64_t memory = available_memory();
  if (::fstatvfs(file, &room) != 0 || room.f_blocks == 0) {
    return memory;
  }
  return std::min<std::uint64_t>(memory, room.f_bavail * room.f_frsize);
}

[[noreturn]] void out_of_memory(int file, std::uint64_t bytes, const std::string& reason) {
  throw Error(
      ErrorKind::kMemory,
      fmt::format("not enough shared memory: {} bytes are needed, {} are available in /dev/shm "
                  "({})\n  Enlarge it (mount -o remount,size=...; in a container --shm-size), or "
                  "use fewer ranks, a smaller reduce_bucket_size, or share_frozen false.",
                  bytes,
                  available_in(file),
                  reason));
}

// A file in /dev/shm that has no name: nothing is left of it when its processes are gone.
int open_unnamed() {
  const int file = ::open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0) {
    return file;
  }
  const int reason = errno;
  const std::string name = fmt::format("/zeroth-{}-{}", ::getpid(), ::time(nullptr));
  const int named = ::shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  if (named < 0) {
    throw Error(ErrorKind::kMemory,
                fmt::format("cannot create shared memory in /dev/shm: {}, {}\n  Ranks of one host "
                            "meet in a tmpfs that is mounted there and writable.",
                            std::strerror(reason),
                            std::strerror(errno)));
  }
  ::shm_unlink(name.c_str());
  return named;
}

}  // namespace

Mapping::Mapping(int file, std::uint64_t offset, std::size_t bytes) : bytes_(bytes) {
  void* place = ::mmap(nullptr,
                       bytes,
                       PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_POPULATE,
                       file,
                       static_cast<off_t>(offset));
  if (place == MAP_FAILED) {
    throw Error(ErrorKind::kMemory,
                fmt::format("cannot map {} bytes of shared memory: {}\n  The address space or "
                            "RLIMIT_AS is too small.",
                            bytes,
                            std::strerror(errno)));
  }
  data_ = static_cast<std::byte*>(place);
}

Mapping::~Mapping() {
  ::munmap(data_, bytes_);
}

std::shared_ptr<Segment> Segment::create_shared(int size) {
  return std::make_shared<Segment>(open_unnamed(), size, true);
}

std::shared_ptr<Segment> Segment::create_in_process(int size) {
  const int file = ::memfd_create("zeroth-threads", MFD_CLOEXEC);
  if (file < 0) {
    throw Error(ErrorKind::kMemory,
                fmt::format("cannot create memory for threads: {}", std::strerror(errno)));
  }
  return std::make_shared<Segment>(file, size, true);
}

std::shared_ptr<Segment> Segment::open(int file, int size) {
  return std::make_shared<Segment>(file, size, false);
}

Segment::Segment(int file, int size, bool creator)
    : file_(file), size_(size), channel_bytes_(channel_half(size)) {
  const auto ranks = static_cast<std::uint64_t>(size);
  channels_begin_ = to_page(sizeof(ControlHeader)) + to_page(ranks * sizeof(RankSlot));
  windows_begin_ = channels_begin_ + to_page(ranks * ranks * sizeof(Channel));
  channel_windows_begin_ = windows_begin_ + ranks * kWindowPieces * kWindowPiece;
  buffers_begin_ = channel_windows_begin_ + ranks * ranks * 2 * channel_bytes_;
  if (creator) {
    grow(buffers_begin_, windows_begin_);
    commit(0, windows_begin_);
  }
  // Windows are mapped but not touched: pages are given to them by commit_window().
  void* place = ::mmap(nullptr, buffers_begin_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (place == MAP_FAILED) {
    throw Error(
        ErrorKind::kMemory,
        fmt::format(
            "cannot map {} bytes of shared memory: {}", buffers_begin_, std::strerror(errno)));
  }
  control_ = static_cast<std::byte*>(place);
}

Segment::~Segment() {
  ::munmap(control_, buffers_begin_);
  ::close(file_);
}

ControlHeader& Segment::header() const noexcept {
  return *reinterpret_cast<ControlHeader*>(control_);
}

RankSlot& Segment::slot(int rank) const noexcept {
  return reinterpret_cast<RankSlot*>(control_ + to_page(sizeof(ControlHeader)))[rank];
}

Channel& Segment::channel(int from, int to) const noexcept {
  return reinterpret_cast<Channel*>(control_ + channels_begin_)[from * size_ + to];
}

std::byte* Segment::window(int rank, std::uint64_t piece) const noexcept {
  const std::uint64_t place =
      static_cast<std::uint64_t>(rank) * kWindowPieces + piece % kWindowPieces;
  return control_ + windows_begin_ + place * kWindowPiece;
}

std::byte* Segment::channel_window(int from, int to, std::uint64_t piece) const noexcept {
  const std::uint64_t half = static_cast<std::uint64_t>(from * size_ + to) * 2 + piece % 2;
  return control_ + channel_windows_begin_ + half * channel_bytes_;
}

std::size_t Segment::window_bytes() noexcept {
  return kWindowPiece;
}

void Segment::commit_window(int rank) {
  commit(static_cast<std::uint64_t>(window(rank, 0) - control_), kWindowPieces * kWindowPiece);
}

void Segment::commit_channel(int from, int to) {
  commit(static_cast<std::uint64_t>(channel_window(from, to, 0) - control_), 2 * channel_bytes_);
}

void Segment::grow(std::uint64_t end, std::uint64_t bytes) {
  if (available_in(file_) < bytes) {
    out_of_memory(file_, bytes, "too small or full");
  }
  if (::ftruncate(file_, static_cast<off_t>(end)) != 0) {
    out_of_memory(file_, bytes, std::strerror(errno));
  }
}

void Segment::commit(std::uint64_t offset, std::uint64_t bytes) {
  if (bytes == 0) {
    return;
  }
  int failed = EINTR;
  while (failed == EINTR) {
    failed = ::posix_fallocate(file_, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  }
  if (failed != 0) {
    out_of_memory(file_, bytes, std::strerror(failed));
  }
}

void Segment::release(std::uint64_t offset, std::uint64_t bytes) noexcept {
  ::fallocate(file_,
              FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(offset),
              static_cast<off_t>(bytes));
}

std::shared_ptr<Mapping> Segment::map(std::uint64_t offset, std::size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(mappings_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<Mapping>& known = mappings_[offset];
  std::shared_ptr<Mapping> mapping = known.lock();
  if (mapping == nullptr) {
    mapping = std::make_shared<Mapping>(file_, offset, bytes);
    known = mapping;
  }
  return mapping;
}

Segment::View Segment::view(std::uint64_t offset, std::size_t bytes) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [begin, known] : mappings_) {
      std::shared_ptr<Mapping> mapping = known.lock();
      if (mapping != nullptr && begin <= offset && offset + bytes <= begin + mapping->bytes()) {
        const std::byte* data = mapping->data() + (offset - begin);
        return {.mapping = std::move(mapping), .data = data};
      }
    }
  }
  const std::uint64_t page = offset / kPage * kPage;
  std::shared_ptr<Mapping> mapping = std::make_shared<Mapping>(file_, page, offset - page + bytes);
  const std::byte* data = mapping->data() + (offset - page);
  return {.mapping = std::move(mapping), .data = data};
}

std::uint64_t Segment::place_of(const std::byte* data, std::size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [begin, known] : mappings_) {
    const std::shared_ptr<Mapping> mapping = known.lock();
    if (mapping != nullptr && !std::less<>{}(data, mapping->data()) &&
        !std::less<>{}(mapping->data() + mapping->bytes(), data + bytes)) {
      return begin + static_cast<std::uint64_t>(data - mapping->data());
    }
  }
  return kPrivateSource;
}

}  // namespace zeroth::comm
