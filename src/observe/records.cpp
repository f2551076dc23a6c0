#include "observe/records.h"

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

Records::Records(const std::filesystem::path& path)
    : path_(path),
      descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0) {
    fail(path_);
  }
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
