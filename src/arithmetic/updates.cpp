#include "arithmetic/updates.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace zeroth::arithmetic {
namespace {

// Transformers rounds up the product of doubles as it is: 1.1 epochs of 50 updates are 56, for the
// product is 55.00000000000001. Runs stay comparable only if we do the same.
std::int64_t rounded_up(double factor, std::int64_t count, const char* setting) {
  constexpr double kLargest = 9007199254740992;  // 2^53: counts beyond are no longer exact
  const double product = std::ceil(factor * static_cast<double>(count));
  if (!(product >= 0 && product <= kLargest)) {
    throw Error(ErrorKind::kConfig,
                fmt::format("{} {} of {} updates is no number of updates: give a finite value that "
                            "is not negative and asks for at most 2^53 updates",
                            setting,
                            factor,
                            count));
  }
  return static_cast<std::int64_t>(product);
}

}  // namespace

std::int64_t updates_per_epoch(std::int64_t rows, std::int64_t global_rows) {
  ZEROTH_CHECK(rows >= 0 && global_rows >= 1, "{} rows, {} an update", rows, global_rows);
  return rows / global_rows + (rows % global_rows == 0 ? 0 : 1);
}

std::int64_t last_window_rows(std::int64_t rows, std::int64_t global_rows) {
  ZEROTH_CHECK(rows >= 0 && global_rows >= 1, "{} rows, {} an update", rows, global_rows);
  const std::int64_t remainder = rows % global_rows;
  return remainder == 0 ? std::min(rows, global_rows) : remainder;
}

std::int64_t updates_of_epochs(double epochs, std::int64_t updates_per_epoch) {
  return std::max<std::int64_t>(1, rounded_up(epochs, updates_per_epoch, "num_train_epochs"));
}

RunLength run_length(const RunRequest& request) {
  RunLength length;
  length.updates_per_epoch = updates_per_epoch(request.rows, request.global_rows);
  length.last_window_rows = last_window_rows(request.rows, request.global_rows);
  length.updates_by_epochs = updates_of_epochs(request.num_train_epochs, length.updates_per_epoch);
  if (request.max_steps > 0) {
    length.updates_by_max_steps = request.max_steps;
  }
  length.total_updates = length.updates_by_max_steps.value_or(length.updates_by_epochs);
  return length;
}

std::int64_t warmup_updates(std::int64_t warmup_steps,
                            double warmup_ratio,
                            std::int64_t total_updates) {
  return warmup_steps > 0 ? warmup_steps : rounded_up(warmup_ratio, total_updates, "warmup_ratio");
}

}  // namespace zeroth::arithmetic
