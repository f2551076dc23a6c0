#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace zeroth::observe {

// "1:02:03" or "02:03".
[[nodiscard]] std::string clock_text(double seconds);

// 12345678 -> "12,345,678".
[[nodiscard]] std::string grouped(std::int64_t number);

// "123.4 MB" for people.
[[nodiscard]] std::string bytes_text(std::int64_t bytes);

struct ProgressFields {
  std::int64_t step = 0;
  std::int64_t total = 0;
  double loss = 0;
  double learning_rate = 0;
  double grad_norm = 0;    // before clipping
  double clip_factor = 1;  // below 1: the gradient was shortened by this
  bool skipped = false;    // no update was made
  double tokens_per_second = 0;
  double seconds_left = 0;
};

// " 12% 6/50  loss 2.3456  lr 1.00e-04  norm 1.234  5432 tokens/s  01:23 left"; a clipped gradient
// shows both norms, "norm 5.000 clipped to 1.000", a skipped attempt "norm inf/nan (skipped)".
[[nodiscard]] std::string progress_text(const ProgressFields& fields);

// One line per `every` updates; on a terminal the line is redrawn at each update instead. Writes to
// standard error.
class ProgressLine {
 public:
  explicit ProgressLine(std::int64_t every);

  void show(const ProgressFields& fields);
  // Ends a redrawn line, so that other words start on a line of their own.
  void finish();

 private:
  std::int64_t every_;
  bool terminal_;
  bool drawn_ = false;
};

}  // namespace zeroth::observe
