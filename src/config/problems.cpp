#include "config/problems.h"

#include "base/error.h"
#include "base/text.h"
#include <fmt/format.h>

namespace zeroth::config {

void Problems::throw_if_any() const {
  if (problems_.empty()) {
    return;
  }
  const std::string title =
      problems_.size() == 1
          ? problems_.front()
          : fmt::format("{} things are wrong\n  {}", problems_.size(), join(problems_, "\n  "));
  throw Error(ErrorKind::kConfig, title);
}

}  // namespace zeroth::config
