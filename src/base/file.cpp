#include "base/file.h"

#include <array>
#include <cerrno>
#include <cstring>

#include "base/atomic_file.h"
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace zeroth {
namespace {

std::string reason() {
  return std::strerror(errno);
}

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
  AtomicFile file(path);
  file.append(std::as_bytes(std::span(content)));
  file.publish();
}

}  // namespace zeroth
