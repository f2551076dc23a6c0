#include "offload/swap_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace zeroth::offload {
namespace {

constexpr int kFlags = O_RDWR | O_CLOEXEC;
constexpr mode_t kOwnerOnly = S_IRUSR | S_IWUSR;

[[noreturn]] void fail(const std::string& what, const std::string& remedy) {
  throw Error(ErrorKind::kDisk, what + "\n  " + remedy);
}

void require_folder(const std::filesystem::path& folder) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    fail(fmt::format("nvme_path {} {}",
                     folder.string(),
                     std::filesystem::exists(folder, error) ? "is not a folder" : "does not exist"),
         "Name a folder on the disk that state is to rest on.");
  }
}

// Where the file system cannot make a file without a name, one loses its name at once.
int open_and_unlink(const std::filesystem::path& folder, int flags) {
  std::string name = (folder / "zeroth-swap-XXXXXX").string();
  const int descriptor = ::mkostemp(name.data(), O_CLOEXEC | (flags & O_DIRECT));
  if (descriptor >= 0) {
    ::unlink(name.c_str());
  }
  return descriptor;
}

int open_unnamed(const std::filesystem::path& folder, int flags) {
  const int descriptor = ::open(folder.c_str(), kFlags | O_TMPFILE | flags, kOwnerOnly);
  const bool knows_unnamed = descriptor >= 0 || (errno != EOPNOTSUPP && errno != EISDIR);
  return knows_unnamed ? descriptor : open_and_unlink(folder, flags);
}

}  // namespace

SwapFile::SwapFile(const std::filesystem::path& folder, std::int64_t bytes)
    : folder_(folder), text_(fmt::format("the swap file in {}", folder.string())) {
  require_folder(folder);
  descriptor_ = open_unnamed(folder, O_DIRECT);
  direct_ = descriptor_ >= 0;
  if (!direct_ && errno == EINVAL) {
    descriptor_ = open_unnamed(folder, 0);
  }
  if (descriptor_ < 0) {
    fail(fmt::format(
             "cannot make a file in nvme_path {}: {}", folder.string(), std::strerror(errno)),
         "Name a folder that may be written.");
  }
  try {
    (void)extend(bytes);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

SwapFile::SwapFile(SwapFile&& other) noexcept
    : folder_(std::move(other.folder_)),
      text_(std::move(other.text_)),
      bytes_(other.bytes_),
      direct_(other.direct_),
      descriptor_(std::exchange(other.descriptor_, -1)) {
}

SwapFile::~SwapFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

// Room is taken now rather than in the middle of an update.
std::int64_t SwapFile::extend(std::int64_t bytes) {
  const std::int64_t begin = bytes_;
  const std::int64_t more = aligned_up(bytes);
  const int error = more == 0 ? 0 : ::posix_fallocate(descriptor_, begin, more);
  if (error == 0) {
    bytes_ += more;
    return begin;
  }

  struct statvfs disk {};

  const bool known = ::statvfs(folder_.c_str(), &disk) == 0;
  fail(fmt::format("nvme_path {} has no room for {} bytes more: {}{}",
                   folder_.string(),
                   more,
                   std::strerror(error),
                   known ? fmt::format(", {} bytes are free", disk.f_bavail * disk.f_frsize) : ""),
       "Name a folder on a larger disk, or let less rest on it.");
}

}  // namespace zeroth::offload
