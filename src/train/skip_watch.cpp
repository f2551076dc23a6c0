#include "train/skip_watch.h"

#include "base/error.h"
#include <fmt/format.h>

namespace zeroth::train {

void SkipWatch::after(const engine::StepReport& report) {
  in_a_row_ = report.updated ? 0 : in_a_row_ + 1;
  if (report.stuck_at_minimum) {
    throw Error(ErrorKind::kData,
                fmt::format("loss scale at minimum {}, {} consecutive skipped attempts; inf or NaN "
                            "in {}\n  The model does not fit fp16's range, as weights made for "
                            "bf16 often do not: consider bf16. Or it has diverged: {}",
                            report.loss_scale,
                            in_a_row_,
                            report.non_finite,
                            advice()));
  }
  if (in_a_row_ >= config_.optimizer.max_skipped) {
    throw Error(
        ErrorKind::kData,
        fmt::format(
            "{} attempts in a row made no update{}\n  {}",
            in_a_row_,
            report.non_finite.empty() ? "" : fmt::format("; inf or NaN in {}", report.non_finite),
            advice()));
  }
}

std::string SkipWatch::advice() const {
  const double fixed = config_.model.loss_scale.fixed;
  const std::string scale =
      config_.model.precision == config::Precision::kFp16 && fixed > 0
          ? fmt::format("lower the loss scale, which is fixed at {} (0 lets it follow), ", fixed)
          : "";
  return fmt::format(
      "{}lower learning_rate, now {}, look at the rows of the last updates, or raise "
      "max_skipped_updates, now {}.",
      scale,
      config_.optimizer.learning_rate,
      config_.optimizer.max_skipped);
}

}  // namespace zeroth::train
