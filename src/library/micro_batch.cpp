#include "library/micro_batch.h"

#include <algorithm>

#include "base/error.h"
#include "config/schema.h"
#include <fmt/format.h>

namespace zeroth::library {
namespace {

constexpr auto kMicro = "per_device_train_batch_size";
constexpr auto kAccumulation = "gradient_accumulation_steps";

std::string count_of(std::int64_t rows) {
  return rows == 1 ? "1 row" : fmt::format("{} rows", rows);
}

// Settings with which this loader gives the batch in force, if there are any.
std::string remedy(std::int64_t rows, const config::RunConfig& config) {
  const std::int64_t per_micro_step = rows * config.grid.dp;
  if (rows < 1 || config.global_rows() % per_micro_step != 0) {
    return "";
  }
  return fmt::format(
      ", or set train_micro_batch_size_per_gpu {} and {} {}, which make {} with this loader",
      rows,
      kAccumulation,
      config.global_rows() / per_micro_step,
      count_of(config.global_rows()));
}

std::string message_of(std::int64_t rows, std::int64_t rank, const config::RunConfig& config) {
  const config::BatchSettings& batch = config.batch;
  const std::int64_t update = rows * batch.accumulation * config.grid.dp;
  return fmt::format(
      "the loader gave {} on rank {}, and the micro-batch in force is {}\n    {}\n    {}\n    {}\n"
      "    ranks {} ({})\n  So an update would follow {} x {} x {} = {}, not {}.\n  Give {} in "
      "every micro-batch{}. An epoch's last micro-batch may be smaller: set "
      "Batch::last_of_epoch.",
      count_of(rows),
      rank,
      count_of(batch.micro_batch_rows),
      with_source(config, kMicro),
      with_source(config, kAccumulation),
      with_source(config, "train_batch_size"),
      config.grid.dp,
      config.grid.source,
      rows,
      batch.accumulation,
      config.grid.dp,
      count_of(update),
      count_of(config.global_rows()),
      count_of(batch.micro_batch_rows),
      remedy(rows, config));
}

}  // namespace

std::int64_t rows_of(const Batch& batch) {
  if (batch.rows >= 0) {
    return batch.rows;
  }
  if (batch.tensors.empty()) {
    return 0;
  }
  const at::Tensor& first = batch.tensors.front();
  if (!first.defined() || first.dim() == 0) {
    throw Error(ErrorKind::kUsage,
                "a batch whose first tensor has no rows\n  Put a tensor first whose first dim "
                "counts the rows, or set Batch::rows.");
  }
  return first.size(0);
}

void require_rows(const Batch& batch, std::int64_t rank, const config::RunConfig& config) {
  const std::int64_t rows = rows_of(batch);
  const std::int64_t in_force = config.batch.micro_batch_rows;
  if (rows != in_force && !(batch.last_of_epoch && rows < in_force)) {
    throw Error(ErrorKind::kUsage, message_of(rows, rank, config));
  }
}

std::string with_source(const config::RunConfig& config, const std::string& key) {
  const config::SettingInForce* const found = config.find(key);
  if (found == nullptr) {
    return key;
  }
  return fmt::format("{} {} ({})",
                     found->spelled.empty() ? key : found->spelled,
                     config::shown(found->value),
                     found->source);
}

}  // namespace zeroth::library
