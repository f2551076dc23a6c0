#include "text/split_behavior.h"

#include <fmt/format.h>

namespace zeroth::text {
namespace {

struct Run {
  Span span;
  bool delimiter = false;
};

// Alternating or adjoining runs that cover the text without gaps.
std::vector<Run> runs_of(const std::vector<Span>& delimiters, std::size_t length, bool invert) {
  std::vector<Run> runs;
  runs.reserve(2 * delimiters.size() + 1);
  std::size_t covered = 0;
  for (const Span& span : delimiters) {
    if (span.begin > covered) {
      runs.push_back({{covered, span.begin}, invert});
    }
    runs.push_back({span, !invert});
    covered = span.end;
  }
  if (length > covered) {
    runs.push_back({{covered, length}, invert});
  }
  return runs;
}

// A delimiter joins the piece before it, unless that piece ends in a delimiter already.
void merge_with_previous(const std::vector<Run>& runs, std::vector<Span>& parts) {
  bool after_delimiter = false;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].delimiter && !after_delimiter && i > 0) {
      parts.back().end = runs[i].span.end;
    } else {
      parts.push_back(runs[i].span);
    }
    after_delimiter = runs[i].delimiter;
  }
}

// The mirror image: of several delimiters in a row only the last joins the piece after it.
void merge_with_next(const std::vector<Run>& runs, std::vector<Span>& parts) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const bool joins = i > 0 && runs[i - 1].delimiter && !runs[i].delimiter;
    if (joins) {
      parts.back().end = runs[i].span.end;
    } else {
      parts.push_back(runs[i].span);
    }
  }
}

void merge_equal(const std::vector<Run>& runs, std::vector<Span>& parts) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i > 0 && runs[i].delimiter == runs[i - 1].delimiter) {
      parts.back().end = runs[i].span.end;
    } else {
      parts.push_back(runs[i].span);
    }
  }
}

}  // namespace

SplitBehavior parse_split_behavior(Fields& fields) {
  const std::string name = fields.string_or("behavior", "Isolated");
  if (name == "Removed") {
    return SplitBehavior::kRemoved;
  }
  if (name == "Isolated") {
    return SplitBehavior::kIsolated;
  }
  if (name == "MergedWithPrevious") {
    return SplitBehavior::kMergedWithPrevious;
  }
  if (name == "MergedWithNext") {
    return SplitBehavior::kMergedWithNext;
  }
  if (name == "Contiguous") {
    return SplitBehavior::kContiguous;
  }
  fields.not_supported(fmt::format("the behavior \"{}\"", name));
}

void split_at(const std::vector<Span>& delimiters,
              std::size_t length,
              SplitBehavior behavior,
              bool invert,
              std::vector<Span>& parts) {
  const std::vector<Run> runs = runs_of(delimiters, length, invert);
  switch (behavior) {
    case SplitBehavior::kRemoved:
    case SplitBehavior::kIsolated:
      for (const Run& run : runs) {
        if (behavior == SplitBehavior::kIsolated || !run.delimiter) {
          parts.push_back(run.span);
        }
      }
      break;
    case SplitBehavior::kMergedWithPrevious:
      merge_with_previous(runs, parts);
      break;
    case SplitBehavior::kMergedWithNext:
      merge_with_next(runs, parts);
      break;
    case SplitBehavior::kContiguous:
      merge_equal(runs, parts);
      break;
  }
}

}  // namespace zeroth::text
