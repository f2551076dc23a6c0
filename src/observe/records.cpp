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
  if (::write(descriptor_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    fail(path_);
  }
}

}  // namespace zeroth::observe
