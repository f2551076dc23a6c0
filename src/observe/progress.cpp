#include "observe/progress.h"

#include <array>
#include <cmath>

#include "base/log.h"
#include <fmt/format.h>
#include <unistd.h>

namespace zeroth::observe {

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(std::max(0.0, seconds)));
  const std::int64_t hours = whole / 3600;
  const std::int64_t minutes = whole / 60 % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60)
                   : fmt::format("{:02}:{:02}", minutes, whole % 60);
}

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t place = digits.size(); place > first + 3;) {
    place -= 3;
    digits.insert(place, 1, ',');
  }
  return digits;
}

std::string bytes_text(std::int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits{"B", "KB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1000 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

namespace {

std::string norm_text(const ProgressFields& fields) {
  if (fields.skipped) {
    return std::isfinite(fields.grad_norm) ? "none (skipped)" : "inf/nan (skipped)";
  }
  return fields.clip_factor < 1 ? fmt::format("{:.3f} clipped to {:.3f}",
                                              fields.grad_norm,
                                              fields.grad_norm * fields.clip_factor)
                                : fmt::format("{:.3f}", fields.grad_norm);
}

}  // namespace

std::string progress_text(const ProgressFields& fields) {
  const double percent =
      100.0 * static_cast<double>(fields.step) / static_cast<double>(fields.total);
  return fmt::format("{:3.0f}% {}/{}  loss {:.4f}  lr {:.2e}  norm {}  {:.0f} tokens/s  {} left",
                     percent,
                     fields.step,
                     fields.total,
                     fields.loss,
                     fields.learning_rate,
                     norm_text(fields),
                     fields.tokens_per_second,
                     clock_text(fields.seconds_left));
}

ProgressLine::ProgressLine(std::int64_t every)
    : every_(every), terminal_(::isatty(STDERR_FILENO) == 1) {
}

void ProgressLine::show(const ProgressFields& fields) {
  if (terminal_) {
    const std::string line = "\r\033[K" + progress_text(fields);
    drawn_ = ::write(STDERR_FILENO, line.data(), line.size()) > 0;
  } else if (fields.step == 1 || fields.step == fields.total || fields.step % every_ == 0) {
    log::info(progress_text(fields));
  }
}

void ProgressLine::finish() {
  if (drawn_) {
    log::info("");
    drawn_ = false;
  }
}

}  // namespace zeroth::observe
