#pragma once

#include <cstdint>
#include <string>

#include "config/run_config.h"
#include "engine/options.h"

namespace zeroth::train {

// Ends a run that has no hope: fp16 whose loss scale cannot fall any further, or as many skipped
// attempts in a row as max_skipped_updates allows.
class SkipWatch {
 public:
  // `in_a_row`: attempts that had been skipped when the run was interrupted.
  explicit SkipWatch(const config::RunConfig& config, std::int64_t in_a_row = 0)
      : config_(config), in_a_row_(in_a_row) {}

  [[nodiscard]] std::int64_t in_a_row() const noexcept { return in_a_row_; }

  // After each finished window. kData with what to change.
  void after(const engine::StepReport& report);

 private:
  [[nodiscard]] std::string advice() const;

  const config::RunConfig& config_;
  std::int64_t in_a_row_ = 0;
};

}  // namespace zeroth::train
