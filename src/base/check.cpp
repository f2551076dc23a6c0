#include "base/check.h"

namespace zeroth::internal {

void check_failed(const char* file,
                  int line,
                  std::string_view condition,
                  const std::string& message) {
  std::string_view name(file);
  if (const auto src = name.rfind("/src/"); src != std::string_view::npos) {
    name.remove_prefix(src + 1);
  }
  throw Error(
      ErrorKind::kInternal,
      fmt::format("{}\n  check failed at {}:{}: {}\n  This is a bug in zeroth, not in your input.",
                  message,
                  name,
                  line,
                  condition));
}

}  // namespace zeroth::internal
