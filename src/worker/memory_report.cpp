#include "worker/memory_report.h"

#include <cmath>

#include "observe/progress.h"
#include "plan/input.h"
#include "plan/needs.h"
#include "plan/units.h"
#include <fmt/format.h>

namespace zeroth::worker {
namespace {

using observe::bytes_text;

constexpr double kReported = 0.1;

std::int64_t planned_bytes(plan::PlanInput input, const train::MicroBatchSize& largest) {
  input.micro_batch_rows = largest.rows;
  input.row_tokens = largest.tokens;
  input.row_targets = std::max<std::int64_t>(1, largest.targets / largest.rows);
  return plan::needs_of(input, plan::size_of(input)).device.total().count();
}

std::string by_purpose(const memory::ByPurpose& bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] > 0) {
      text += fmt::format("{}{} {}",
                          text.empty() ? "" : ", ",
                          memory::purpose_name(static_cast<memory::Purpose>(i)),
                          bytes_text(bytes[i]));
    }
  }
  return text;
}

}  // namespace

MemoryReport memory_report(const plan::PlanInput& input,
                           const memory::Tally& tally,
                           const train::MicroBatchSize& largest,
                           const ProcessBytes& process) {
  MemoryReport report{.counted = tally.peak_bytes(),
                      .by_purpose = tally.at_peak(),
                      .largest = largest,
                      .process = process};
  if (largest.rows > 0) {
    report.planned = planned_bytes(input, largest);
  }
  return report;
}

std::string text_of(const MemoryReport& report) {
  std::string text = fmt::format("memory of rank 0 at the most: {} counted ({})",
                                 bytes_text(report.counted),
                                 by_purpose(report.by_purpose));
  if (report.planned > 0) {
    const double deviation =
        static_cast<double>(report.counted) / static_cast<double>(report.planned) - 1;
    text +=
        fmt::format("; plan for its largest micro-batch, {} rows of {} tokens: {} ({:+.1f} %{})",
                    report.largest.rows,
                    report.largest.tokens,
                    bytes_text(report.planned),
                    100 * deviation,
                    std::abs(deviation) > kReported ? ", more than a tenth off" : "");
  }
  return text + fmt::format("; process (PSS): {}, {} of it before the model was loaded",
                            bytes_text(report.process.at_end),
                            bytes_text(report.process.before));
}

Json json_of(const MemoryReport& report) {
  Json by_purpose = Json::object();
  for (std::size_t i = 0; i < report.by_purpose.size(); ++i) {
    by_purpose[memory::purpose_name(static_cast<memory::Purpose>(i))] = report.by_purpose[i];
  }
  return {{"counted_bytes", report.counted},
          {"counted_bytes_by_purpose", std::move(by_purpose)},
          {"planned_bytes", report.planned > 0 ? Json(report.planned) : Json(nullptr)},
          {"process_bytes", report.process.at_end},
          {"process_bytes_before_the_model", report.process.before}};
}

}  // namespace zeroth::worker
