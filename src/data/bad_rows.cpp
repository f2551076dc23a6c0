#include "data/bad_rows.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include <fmt/format.h>

namespace zeroth::data {
namespace {

constexpr std::size_t kListed = 20;  // messages printed; the rest is counted

}  // namespace

std::string to_string(const RowPlace& place) {
  if (static_cast<std::int64_t>(place.line) == place.number) {
    return fmt::format("{}:{}", place.file->string(), place.line);
  }
  return fmt::format("{}:{} (row {})", place.file->string(), place.line, place.number);
}

void BadRows::add(const RowPlace& place, const std::string& problem) {
  add_worded(fmt::format("{}: {}", to_string(place), problem));
}

void BadRows::add_worded(std::string message) {
  ++count_;
  if (messages_.size() < kListed) {
    messages_.push_back(std::move(message));
  }
}

void BadRows::refuse_file(const std::string& message) {
  refused_files_.push_back(message);
}

void BadRows::take_back(std::int64_t count) {
  count_ -= count;
  messages_.resize(std::min(messages_.size(), static_cast<std::size_t>(count_)));
}

void BadRows::raise_if_any(std::int64_t rows_read, bool skip_bad_rows) const {
  const bool rows_refused = count_ > 0 && !skip_bad_rows;
  if (refused_files_.empty() && !rows_refused) {
    return;
  }
  std::vector<std::string> parts = refused_files_;
  if (rows_refused) {
    parts.push_back(listed_rows(rows_read));
  }
  throw Error(ErrorKind::kData, join(parts, "\n"));
}

std::string BadRows::listed_rows(std::int64_t rows_read) const {
  std::string text = fmt::format(
      "{} of {} rows cannot be used:\n  {}", count_, rows_read, join(messages_, "\n  "));
  if (const auto listed = static_cast<std::int64_t>(messages_.size()); listed < count_) {
    text += fmt::format("\n  ... and {} more", count_ - listed);
  }
  return text + "\n  Mend these rows, or drop them with --skip_bad_rows (they are counted).";
}

}  // namespace zeroth::data
