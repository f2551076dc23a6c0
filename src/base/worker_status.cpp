#include "base/worker_status.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace zeroth {
namespace {

constexpr std::size_t kActivityBytes = 4096;  // a page; the failure lies behind it, of any length

[[noreturn]] void fail(const char* what) {
  throw Error(ErrorKind::kInternal,
              fmt::format("cannot {} the status of a worker: {}", what, std::strerror(errno)));
}

}  // namespace

WorkerStatus::WorkerStatus(int descriptor) : descriptor_(descriptor) {
  void* const place =
      ::mmap(nullptr, kActivityBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (place == MAP_FAILED) {
    ::close(descriptor);
    fail("map");
  }
  activity_ = static_cast<char*>(place);
}

WorkerStatus WorkerStatus::create() {
  const int descriptor = ::memfd_create("zeroth-status", MFD_CLOEXEC);
  if (descriptor < 0) {
    fail("make");
  }
  if (::ftruncate(descriptor, kActivityBytes) != 0) {
    ::close(descriptor);
    fail("make");
  }
  return WorkerStatus(descriptor);
}

WorkerStatus WorkerStatus::open(int descriptor) {
  struct stat file {};

  if (::fstat(descriptor, &file) != 0 || file.st_size < static_cast<off_t>(kActivityBytes)) {
    fail("open");
  }
  return WorkerStatus(descriptor);
}

WorkerStatus::WorkerStatus(WorkerStatus&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      activity_(std::exchange(other.activity_, nullptr)) {
}

WorkerStatus::~WorkerStatus() {
  if (activity_ != nullptr) {
    ::munmap(activity_, kActivityBytes);
    ::close(descriptor_);
  }
}

void WorkerStatus::set_activity(const std::string& activity) noexcept {
  const std::size_t length = std::min(activity.size(), kActivityBytes - 1);
  std::memcpy(activity_, activity.data(), length);
  activity_[length] = '\0';
}

std::string WorkerStatus::activity() const {
  return {activity_, ::strnlen(activity_, kActivityBytes - 1)};
}

bool WorkerStatus::set_failure(std::string_view message) const noexcept {
  std::size_t done = 0;
  while (done < message.size()) {
    const ssize_t written = ::pwrite(descriptor_,
                                     message.data() + done,
                                     message.size() - done,
                                     static_cast<off_t>(kActivityBytes + done));
    if (written <= 0) {
      return false;
    }
    done += static_cast<std::size_t>(written);
  }
  return true;
}

std::string WorkerStatus::failure() const {
  struct stat file {};

  if (::fstat(descriptor_, &file) != 0) {
    return "";
  }
  std::string text(static_cast<std::size_t>(file.st_size) - kActivityBytes, '\0');
  const ssize_t length =
      ::pread(descriptor_, text.data(), text.size(), static_cast<off_t>(kActivityBytes));
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  return text;
}

}  // namespace zeroth
