#include "observe/records.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace zeroth::observe {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path) {
  throw Error(ErrorKind::kDisk,
              fmt::format("cannot write {}: {}\n  Free some space or choose another output_dir.",
                          path.string(),
                          std::strerror(errno)));
}

}  // namespace

Records::Records(const std::filesystem::path& path, std::int64_t keep_bytes)
    : path_(path),
      descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0 || ::ftruncate(descriptor_, std::min(keep_bytes, bytes())) != 0) {
    fail(path_);
  }
}

std::int64_t Records::bytes() const {
  return ::lseek(descriptor_, 0, SEEK_END);
}

Records::~Records() {
  ::close(descriptor_);
}

void Records::append(const Json& record) {
  // Text from a model may hold any bytes; a record never fails for that.
  const std::string line = record.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const off_t before = ::lseek(descriptor_, 0, SEEK_END);
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t written = ::write(descriptor_, line.data() + done, line.size() - done);
    if (written >= 0) {
      done += static_cast<std::size_t>(written);
    } else if (errno != EINTR) {
      const int why = errno;
      // The records so far stay readable: half a line goes.
      [[maybe_unused]] const int cut = ::ftruncate(descriptor_, before);
      errno = why;
      fail(path_);
    }
  }
}

}  // namespace zeroth::observe
