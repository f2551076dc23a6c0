#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "data/load.h"
#include <fmt/format.h>

namespace zeroth::data {
namespace {

constexpr std::uint64_t kSplitPurpose = 0x73706c69'00000000U;

std::int64_t num_validation_rows(double val_size, std::int64_t num_rows) {
  if (!(val_size > 0) || (val_size >= 1 && val_size != std::floor(val_size))) {
    throw Error(ErrorKind::kConfig,
                fmt::format("val_size {} is neither a number of rows nor a share between 0 and 1\n "
                            " Write --val_size "
                            "100 or --val_size 0.1.",
                            val_size));
  }
  const double rows =
      val_size >= 1 ? val_size : std::ceil(val_size * static_cast<double>(num_rows));
  if (rows >= static_cast<double>(num_rows)) {
    throw Error(
        ErrorKind::kData,
        fmt::format("val_size {} takes {} of {} rows and leaves none to train on\n  Give a smaller "
                    "--val_size, or more rows.",
                    val_size,
                    rows,
                    num_rows));
  }
  return static_cast<std::int64_t>(rows);
}

// Which rows to take: the first of a shuffle, as marks so that both sides keep their order.
std::vector<bool> choose(std::size_t num_rows, std::size_t num_chosen, std::uint64_t seed) {
  std::vector<std::size_t> order(num_rows);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<bool> chosen(num_rows, false);
  RandomStream random(seed, kSplitPurpose);
  for (std::size_t i = 0; i < num_chosen; ++i) {
    std::swap(order[i], order[i + random.below(num_rows - i)]);
    chosen[order[i]] = true;
  }
  return chosen;
}

void count_tokens(Dataset& dataset) {
  dataset.num_tokens = 0;
  dataset.num_targets = 0;
  for (const Example& example : dataset.examples) {
    dataset.num_tokens += static_cast<std::int64_t>(example.input_ids.size());
    dataset.num_targets += example.num_targets();
  }
}

}  // namespace

Dataset split_validation(Dataset& dataset, double val_size, std::uint64_t seed) {
  const std::size_t num_rows = dataset.examples.size();
  const std::int64_t num_chosen =
      num_validation_rows(val_size, static_cast<std::int64_t>(num_rows));
  const auto chosen = choose(num_rows, static_cast<std::size_t>(num_chosen), seed);
  Dataset validation;
  validation.counts.read = num_chosen;
  validation.counts.kept = num_chosen;
  validation.fingerprint = dataset.fingerprint;
  std::vector<Example> rest;
  for (std::size_t row = 0; row < num_rows; ++row) {
    (chosen[row] ? validation.examples : rest).push_back(std::move(dataset.examples[row]));
  }
  dataset.examples = std::move(rest);
  count_tokens(dataset);
  count_tokens(validation);
  return validation;
}

}  // namespace zeroth::data
