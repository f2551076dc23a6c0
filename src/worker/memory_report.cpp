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

std::int64_t planned_bytes(const config::RunConfig& config,
                           const formats::ModelConfig& model,
                           const train::MicroBatchSize& largest) {
  plan::PlanInput input = plan::input_of(config, model);
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

std::string memory_report(const config::RunConfig& config,
                          const formats::ModelConfig& model,
                          const memory::Tally& tally,
                          const train::MicroBatchSize& largest) {
  std::string text = fmt::format("memory of rank 0 at the most: {} counted ({})",
                                 bytes_text(tally.peak_bytes()),
                                 by_purpose(tally.at_peak()));
  if (largest.rows > 0) {
    const std::int64_t planned = planned_bytes(config, model, largest);
    const double deviation =
        static_cast<double>(tally.peak_bytes()) / static_cast<double>(planned) - 1;
    text +=
        fmt::format("; plan for its largest micro-batch, {} rows of {} tokens: {} ({:+.1f} %{})",
                    largest.rows,
                    largest.tokens,
                    bytes_text(planned),
                    100 * deviation,
                    std::abs(deviation) > kReported ? ", more than a tenth off" : "");
  }
  return text + fmt::format("; resident with the program itself: {}",
                            bytes_text(memory::peak_resident_bytes()));
}

}  // namespace zeroth::worker
