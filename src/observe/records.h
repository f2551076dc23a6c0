#pragma once

#include <cstdint>
#include <filesystem>

#include "base/json.h"

namespace zeroth::observe {

// OUT/metrics.jsonl: one JSON object a line, written at once with a single write, so that a reader
// never meets half a record and a killed run keeps all it had. kDisk if it cannot be written.
class Records {
 public:
  // An existing file keeps its first `keep_bytes` and loses the rest.
  explicit Records(const std::filesystem::path& path, std::int64_t keep_bytes = 0);
  ~Records();
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;

  void append(const Json& record);

  [[nodiscard]] std::int64_t bytes() const;

 private:
  std::filesystem::path path_;
  int descriptor_;
};

}  // namespace zeroth::observe
