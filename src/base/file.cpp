#include "base/file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace zeroth {
namespace {

constexpr std::size_t kWriteBytes = std::size_t{16} << 20;  // at one time

std::string reason() {
  return std::strerror(errno);
}

[[noreturn]] void refuse_write(const std::filesystem::path& path) {
  throw Error(ErrorKind::kDisk,
              fmt::format("cannot write {}: {}\n  Nothing was replaced. Free some space or choose "
                          "another folder.",
                          path.string(),
                          reason()));
}

// Hands all of `bytes` to `write_some`, which takes as many as it can.
template <typename WriteSome>
void write_all(std::span<const std::byte> bytes,
               const std::filesystem::path& path,
               WriteSome write_some) {
  while (!bytes.empty()) {
    const ssize_t written = write_some(bytes);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written < 0) {
      refuse_write(path);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path)
    : final_path_(std::move(path)),
      path_(fmt::format("{}.tmp{}", final_path_.string(), ::getpid())),
      descriptor_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0) {
    throw Error(
        ErrorKind::kDisk,
        fmt::format("cannot create {}: {}\n  Check that the folder exists and may be written to.",
                    path_,
                    reason()));
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
    ::unlink(path_.c_str());
  }
}

void AtomicFile::append(std::span<const std::byte> bytes) {
  write_all(bytes, final_path_, [this](std::span<const std::byte> left) {
    return ::write(descriptor_, left.data(), std::min(left.size(), kWriteBytes));
  });
  // What is there goes to the disk while the rest is being made: publish() waits for it all.
  appended_ += static_cast<std::int64_t>(bytes.size());
  if (appended_ - started_ >= static_cast<std::int64_t>(kWriteBytes)) {
    ::sync_file_range(descriptor_, started_, appended_ - started_, SYNC_FILE_RANGE_WRITE);
    started_ = appended_;
  }
}

void AtomicFile::overwrite(std::uint64_t offset, std::span<const std::byte> bytes) {
  auto place = static_cast<off_t>(offset);
  write_all(bytes, final_path_, [&](std::span<const std::byte> left) {
    const ssize_t written = ::pwrite(descriptor_, left.data(), left.size(), place);
    place += std::max<ssize_t>(written, 0);
    return written;
  });
}

void AtomicFile::publish() {
  if (::fsync(descriptor_) != 0 || ::rename(path_.c_str(), final_path_.c_str()) != 0) {
    throw Error(ErrorKind::kDisk,
                fmt::format("cannot finish {}: {}", final_path_.string(), reason()));
  }
  ::close(descriptor_);
  descriptor_ = -1;
  sync_folder();
}

// Without this a crash of the machine could forget the rename.
void AtomicFile::sync_folder() const {
  const auto folder =
      final_path_.has_parent_path() ? final_path_.parent_path() : std::filesystem::path(".");
  const int folder_descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_descriptor >= 0) {
    ::fsync(folder_descriptor);
    ::close(folder_descriptor);
  }
}

std::string read_file(const std::filesystem::path& path, ErrorKind missing_kind) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    throw Error(missing_kind, fmt::format("cannot open {}: {}", path.string(), reason()));
  }
  std::string content;

  struct stat status {};

  if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) {
    content.reserve(static_cast<std::size_t>(status.st_size));
  }
  std::array<char, 1 << 16> buffer{};
  ssize_t received = 0;
  while ((received = ::read(descriptor, buffer.data(), buffer.size())) > 0) {
    content.append(buffer.data(), static_cast<std::size_t>(received));
  }
  const std::string why = received < 0 ? reason() : "";
  ::close(descriptor);
  if (received < 0) {
    throw Error(missing_kind, fmt::format("cannot read {}: {}", path.string(), why));
  }
  return content;
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  AtomicFile file(path);
  file.append(std::as_bytes(std::span(content)));
  file.publish();
}

}  // namespace zeroth
