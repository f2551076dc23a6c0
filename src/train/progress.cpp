#include "train/progress.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include <fmt/format.h>

namespace zeroth::train {
namespace {

double number_from(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

Json to_json(const std::optional<arithmetic::LossScaler::State>& scaler) {
  if (!scaler) {
    return nullptr;
  }
  return {{"scale", scaler->scale},
          {"attempts", scaler->attempts},
          {"last_overflow", scaler->last_overflow},
          {"overflows_left", scaler->overflows_left}};
}

std::optional<arithmetic::LossScaler::State> scaler_from(const Json& json) {
  if (json.is_null()) {
    return std::nullopt;
  }
  return arithmetic::LossScaler::State{.scale = json.at("scale"),
                                       .attempts = json.at("attempts"),
                                       .last_overflow = json.at("last_overflow"),
                                       .overflows_left = json.at("overflows_left")};
}

Json to_json(const std::optional<BestEvaluation>& best) {
  if (!best) {
    return nullptr;
  }
  return {{"loss", best->loss}, {"update", best->update}, {"checkpoint", best->checkpoint}};
}

std::optional<BestEvaluation> best_from(const Json& json) {
  if (json.is_null()) {
    return std::nullopt;
  }
  return BestEvaluation{
      .loss = json.at("loss"), .update = json.at("update"), .checkpoint = json.at("checkpoint")};
}

Progress read(const Json& json) {
  const Json& eval_loss = json.at("eval_loss");
  return {.windows = json.at("windows"),
          .rows_at = {.epoch = json.at("epoch"), .row = json.at("row")},
          .engine = {.updates = json.at("updates"),
                     .attempts = json.at("attempts"),
                     .scaler = scaler_from(json.at("loss_scaler"))},
          .skipped = json.at("skipped"),
          .skipped_in_a_row = json.at("skipped_in_a_row"),
          .rows = json.at("rows"),
          .tokens = json.at("tokens"),
          .target_tokens = json.at("target_tokens"),
          .seconds = json.at("seconds"),
          .total_loss = {.sum = number_from(json.at("loss_sum")), .weight = json.at("loss_weight")},
          .unlogged_loss = {.sum = number_from(json.at("unlogged_loss_sum")),
                            .weight = json.at("unlogged_loss_weight")},
          .last_loss = number_from(json.at("last_loss")),
          .offloaded = {.read = json.at("offload_read_bytes"),
                        .written = json.at("offload_write_bytes")},
          .evaluated_at = json.at("evaluated_at"),
          .eval_loss = eval_loss.is_null() ? std::nullopt : std::optional(eval_loss.get<double>()),
          .evaluation_due = json.at("evaluation_due"),
          .evaluated_rows = json.at("evaluated_rows"),
          .best = best_from(json.at("best")),
          .best_saved = best_from(json.at("best_saved")),
          .metrics_bytes = json.at("metrics_bytes"),
          .log_history = Json::array()};
}

}  // namespace

Json finite_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

Json to_json(const Progress& progress) {
  return {{"windows", progress.windows},
          {"epoch", progress.rows_at.epoch},
          {"row", progress.rows_at.row},
          {"updates", progress.engine.updates},
          {"attempts", progress.engine.attempts},
          {"loss_scaler", to_json(progress.engine.scaler)},
          {"skipped", progress.skipped},
          {"skipped_in_a_row", progress.skipped_in_a_row},
          {"rows", progress.rows},
          {"tokens", progress.tokens},
          {"target_tokens", progress.target_tokens},
          {"seconds", progress.seconds},
          {"loss_sum", finite_or_null(progress.total_loss.sum)},
          {"loss_weight", progress.total_loss.weight},
          {"unlogged_loss_sum", finite_or_null(progress.unlogged_loss.sum)},
          {"unlogged_loss_weight", progress.unlogged_loss.weight},
          {"last_loss", finite_or_null(progress.last_loss)},
          {"offload_read_bytes", progress.offloaded.read},
          {"offload_write_bytes", progress.offloaded.written},
          {"evaluated_at", progress.evaluated_at},
          {"eval_loss", progress.eval_loss ? finite_or_null(*progress.eval_loss) : Json()},
          {"evaluation_due", progress.evaluation_due},
          {"evaluated_rows", progress.evaluated_rows},
          {"best", to_json(progress.best)},
          {"best_saved", to_json(progress.best_saved)},
          {"metrics_bytes", progress.metrics_bytes}};
}

Progress progress_from(const Json& json, const std::string& source) {
  try {
    return read(json);
  } catch (const nlohmann::json::exception& fault) {
    throw Error(ErrorKind::kCheckpoint,
                fmt::format("{} does not say how far the run had come: {}\n  Go on from another "
                            "checkpoint.",
                            source,
                            fault.what()));
  }
}

}  // namespace zeroth::train
