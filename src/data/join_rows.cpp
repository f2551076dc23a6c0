#include "data/join_rows.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "data/encode.h"

namespace zeroth::data {
namespace {

using RowIndices = std::vector<std::size_t>;

std::size_t length_of(const Dataset& dataset, std::size_t row) {
  return dataset.examples[row].input_ids.size();
}

// Which rows come together.
std::vector<RowIndices> groups_of(const Dataset& dataset, std::size_t row_tokens) {
  RowIndices longest_first(dataset.examples.size());
  std::iota(longest_first.begin(), longest_first.end(), std::size_t{0});
  std::stable_sort(longest_first.begin(), longest_first.end(), [&](std::size_t a, std::size_t b) {
    return length_of(dataset, a) > length_of(dataset, b);
  });
  std::vector<RowIndices> groups;
  std::set<std::pair<std::size_t, std::size_t>> rooms;  // tokens left, of which group
  for (const std::size_t row : longest_first) {
    const std::size_t length = length_of(dataset, row);
    const auto tightest = rooms.lower_bound({length, 0});
    if (tightest == rooms.end()) {
      rooms.emplace(row_tokens - std::min(length, row_tokens), groups.size());
      groups.push_back({row});
      continue;
    }
    const auto [room, group] = *tightest;
    rooms.erase(tightest);
    rooms.emplace(room - length, group);
    groups[group].push_back(row);
  }
  for (RowIndices& group : groups) {
    std::sort(group.begin(), group.end());
  }
  std::sort(groups.begin(), groups.end());  // by their first rows
  return groups;
}

Example joined(const Dataset& dataset, const RowIndices& group) {
  Example result;
  for (const std::size_t row : group) {
    const Example& example = dataset.examples[row];
    const std::size_t begin = result.input_ids.size();
    result.begins.push_back(static_cast<std::int64_t>(begin));
    result.input_ids.insert(
        result.input_ids.end(), example.input_ids.begin(), example.input_ids.end());
    result.labels.insert(result.labels.end(), example.labels.begin(), example.labels.end());
    result.labels[begin] = kIgnoreLabel;  // nothing before it predicts it
  }
  return result;
}

}  // namespace

void join_rows(Dataset& dataset, std::int64_t row_tokens) {
  std::vector<Example> rows;
  for (const RowIndices& group : groups_of(dataset, static_cast<std::size_t>(row_tokens))) {
    rows.push_back(joined(dataset, group));
  }
  dataset.examples = std::move(rows);
  number_rows(dataset);
}

}  // namespace zeroth::data
