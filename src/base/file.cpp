#include "base/file.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace zeroth {
namespace {

std::string reason() {
  return std::strerror(errno);
}

// Closes the descriptor whatever happens; the file beside the final name is removed unless renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& final_path)
      : final_path_(final_path),
        path_(fmt::format("{}.tmp{}", final_path.string(), ::getpid())),
        descriptor_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0) {
      throw Error(
          ErrorKind::kDisk,
          fmt::format("cannot create {}: {}\n  Check that the folder exists and may be written to.",
                      path_,
                      reason()));
    }
  }

  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  ~TemporaryFile() {
    if (descriptor_ >= 0) {
      ::close(descriptor_);
      ::unlink(path_.c_str());
    }
  }

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) {
        continue;
      }
      if (written < 0) {
        throw Error(
            ErrorKind::kDisk,
            fmt::format("cannot write {}: {}\n  Nothing was replaced. Free some space or choose "
                        "another folder.",
                        final_path_.string(),
                        reason()));
      }
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  }

  void publish() {
    if (::fsync(descriptor_) != 0 || ::rename(path_.c_str(), final_path_.c_str()) != 0) {
      throw Error(ErrorKind::kDisk,
                  fmt::format("cannot finish {}: {}", final_path_.string(), reason()));
    }
    ::close(descriptor_);
    descriptor_ = -1;
    sync_folder();
  }

 private:
  // Without this a crash of the machine could forget the rename.
  void sync_folder() const {
    const auto folder =
        final_path_.has_parent_path() ? final_path_.parent_path() : std::filesystem::path(".");
    const int folder_descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder_descriptor >= 0) {
      ::fsync(folder_descriptor);
      ::close(folder_descriptor);
    }
  }

  std::filesystem::path final_path_;
  std::string path_;
  int descriptor_;
};

}  // namespace

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
  const std::span<const std::byte> bytes = std::as_bytes(std::span(content.data(), content.size()));
  write_file_atomically(path, std::span(&bytes, 1));
}

void write_file_atomically(const std::filesystem::path& path,
                           std::span<const std::span<const std::byte>> parts) {
  TemporaryFile file(path);
  for (const auto& part : parts) {
    file.write(part);
  }
  file.publish();
}

}  // namespace zeroth
