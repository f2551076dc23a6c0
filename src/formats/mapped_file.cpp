#include "formats/mapped_file.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/error.h"
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace zeroth::formats {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const char* verb, int error_number) {
  throw Error(ErrorKind::kModel,
              fmt::format("cannot {} {}: {}", verb, path.string(), std::strerror(error_number)));
}

// Closed once the mapping exists: the mapping keeps the file by itself.
class Descriptor {
 public:
  // A pipe opens at once, and is then found to be no file.
  explicit Descriptor(const std::filesystem::path& path)
      : value_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    if (value_ < 0) {
      fail(path, "open", errno);
    }
  }

  ~Descriptor() { ::close(value_); }

  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] int value() const noexcept { return value_; }

 private:
  int value_;
};

std::size_t size_of(const Descriptor& descriptor, const std::filesystem::path& path) {
  struct stat status {};

  if (::fstat(descriptor.value(), &status) != 0) {
    fail(path, "inspect", errno);
  }
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorKind::kModel, fmt::format("{} is not a regular file", path.string()));
  }
  return static_cast<std::size_t>(status.st_size);
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  const Descriptor descriptor(path);
  const std::size_t size = size_of(descriptor, path);
  if (size == 0) {
    return;  // mmap refuses a length of 0
  }
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor.value(), 0);
  if (address == MAP_FAILED) {
    fail(path, "map", errno);
  }
  bytes_ = std::span(static_cast<const std::byte*>(address), size);
}

MappedFile::~MappedFile() {
  unmap();
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    unmap();
    bytes_ = std::exchange(other.bytes_, {});
  }
  return *this;
}

void MappedFile::unmap() noexcept {
  if (!bytes_.empty()) {
    ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
}

namespace {

std::uintptr_t page_bytes() noexcept {
  return static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

// Whole pages alone: what lies before and behind may be in use.
void drop_pages(std::span<const std::byte> bytes) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::uintptr_t first = (begin + page_bytes() - 1) / page_bytes() * page_bytes();
  const std::uintptr_t last = (begin + bytes.size()) / page_bytes() * page_bytes();
  if (first < last) {
    ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
  }
}

namespace {

// All pages that the bytes touch.
void advise(std::span<const std::byte> bytes, int advice) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::uintptr_t first = begin / page_bytes() * page_bytes();
  ::madvise(reinterpret_cast<void*>(first), begin + bytes.size() - first, advice);
}

}  // namespace

PickedPages::PickedPages(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {
  advise(bytes_, MADV_RANDOM);
}

PickedPages::~PickedPages() {
  advise(bytes_, MADV_NORMAL);
}

void read_ahead(std::span<const std::byte> bytes) noexcept {
  advise(bytes, MADV_WILLNEED);
}

}  // namespace zeroth::formats
