#include "cli/plan_page.h"

#include "observe/progress.h"
#include "plan/byte_size.h"
#include "plan/proposal.h"
#include "plan/report.h"
#include <fmt/format.h>

namespace zeroth::cli {
namespace {

using observe::grouped;
using plan::byte_text;
using plan::Bytes;
using plan::Choice;
using plan::Plan;
using plan::PlanInput;

std::string rows_text(std::int64_t rows) {
  return fmt::format("{} row{}", grouped(rows), rows == 1 ? "" : "s");
}

std::string head(const Plan& plan) {
  const PlanInput& input = plan.input;
  const std::string how = input.lora     ? fmt::format("LoRA of rank {}", input.lora->rank)
                          : input.freeze ? "freeze-tuning"
                                         : "full fine-tuning";
  return fmt::format(
      "memory plan: stage {} on {} rank{}, {}, {}; micro-batch {} of {} tokens\n"
      "parameters: {}, trained: {} ({})\n",
      input.stage,
      grouped(input.ranks),
      input.ranks == 1 ? "" : "s",
      input.compute_type,
      input.optimizer,
      rows_text(input.micro_batch_rows),
      grouped(input.row_tokens),
      grouped(plan.parameters),
      grouped(plan.trainable),
      how);
}

std::string purposes(const Plan& plan) {
  std::string text = "per rank, at the most:\n";
  for (const auto& [name, bytes] : plan::by_purpose(plan.chosen.needs.device)) {
    text += fmt::format("  {:<14} {:>12}\n", name, byte_text(bytes));
  }
  text += fmt::format("  {:<14} {:>12}\n", "total", byte_text(plan.chosen.needs.device.total()));
  if (plan.chosen.needs.host.count() > 0) {
    text += fmt::format("  {:<14} {:>12}\n", "on the host", byte_text(plan.chosen.needs.host));
  }
  if (plan.chosen.needs.files.count() > 0) {
    text += fmt::format("  {:<14} {:>12}\n", "in files", byte_text(plan.chosen.needs.files));
  }
  return text;
}

std::string host_verdict(const Plan& plan) {
  const Bytes needed = plan.chosen.needs.host * plan.input.ranks_on_host();
  return plan.budget.host && needed > *plan.budget.host
             ? fmt::format(
                   "does not fit: the {} ranks of a host need {} there, {} more than its {}",
                   plan.input.ranks_on_host(),
                   byte_text(needed),
                   byte_text(needed - *plan.budget.host),
                   byte_text(*plan.budget.host))
             : "fits";
}

std::string verdict(const Plan& plan, const std::string& device_source) {
  const Bytes total = plan.chosen.needs.device.total();
  const Bytes device = plan.budget.device;
  const std::string there = fmt::format("{} ({})", byte_text(device), device_source);
  return total <= device
             ? fmt::format("{}: {} of {}\n", host_verdict(plan), byte_text(total), there)
             : fmt::format("does not fit: {} are missing, {} of {}\n",
                           byte_text(total - device),
                           byte_text(total),
                           there);
}

// What will do once it is built, where nothing does now.
std::string later(const Plan& plan) {
  for (const Choice& choice : plan.table) {
    if (choice.status == plan::Status::kPlanned && choice.largest_micro_batch > 0) {
      return fmt::format("planned: stage {} with {} will hold {}\n",
                         choice.stage,
                         plan::offload_name(choice.offload),
                         rows_text(choice.largest_micro_batch));
    }
  }
  return "";
}

std::string nothing_fits(const Plan& plan) {
  const Bytes least = plan::least_needed(plan);
  return fmt::format(
             "nothing that is built fits: a single row needs {} at the least, {} more than there "
             "is\n  Shorter rows (--cutoff_len), LoRA, bf16, more ranks or more memory help.\n",
             byte_text(least),
             byte_text(least - plan.budget.device)) +
         later(plan);
}

// What to do about it, or that less would do.
std::string advice(const Plan& plan) {
  const auto proposal = plan::least_that_fits(plan);
  if (!proposal) {
    return nothing_fits(plan);
  }
  return fmt::format(
      "least that fits with the same global batch: stage {}{}, micro-batch {}, accumulation {} "
      "({})\n",
      proposal->stage,
      proposal->offload.uses_files() ? " with " + plan::offload_name(proposal->offload) : "",
      proposal->micro_batch_rows,
      proposal->accumulation,
      byte_text(proposal->needed));
}

std::string largest(const Plan& plan) {
  const std::int64_t rows = plan.chosen.largest_micro_batch;
  return fmt::format("largest micro-batch that fits: {}\n",
                     rows == 0 ? "none, not even one row" : rows_text(rows));
}

std::string accumulation(const Plan& plan) {
  const std::int64_t steps = plan.input.accumulation;
  const std::string counts = steps == 1 ? "1 and 8" : fmt::format("{} and 1", steps);
  return fmt::format(
      "accumulation {} need the same bytes: every micro-step adds to the same gradients, and frees "
      "its activations before the next. What grows is rows per micro-batch.\n",
      counts);
}

std::string traffic(const Plan& plan) {
  const plan::Traffic& traffic = plan.chosen.traffic;
  return plan.input.ranks == 1
             ? ""
             : fmt::format("traffic: a rank sends {} an update (gradients {}, weights {})\n",
                           byte_text(traffic.total()),
                           byte_text(traffic.gradients),
                           byte_text(traffic.weights));
}

// What the settings let rest in files costs in each update.
std::string files(const Plan& plan) {
  const Choice& chosen = plan.chosen;
  if (!chosen.offload.uses_files()) {
    return "";
  }
  return fmt::format("files: a rank reads {} and writes {} an update{}\n",
                     byte_text(chosen.file_traffic.read),
                     byte_text(chosen.file_traffic.written),
                     chosen.file_seconds ? fmt::format(", for which all ranks' disk needs {:.1f} s",
                                                       *chosen.file_seconds)
                                         : "");
}

std::string fit_text(const Choice& choice) {
  return fmt::format("{}{}",
                     choice.fits ? "fits" : "does not fit",
                     choice.status == plan::Status::kPlanned ? ", planned" : "");
}

// What goes from and to files in an update, and how long the disk needs for it.
std::string file_text(const Choice& choice) {
  if (!choice.offload.uses_files()) {
    return "";
  }
  const Bytes moved = choice.file_traffic.read + choice.file_traffic.written;
  return choice.file_seconds ? fmt::format("{} {:.1f} s", byte_text(moved), *choice.file_seconds)
                             : byte_text(moved);
}

std::string table(const Plan& plan) {
  constexpr auto kRow = "  {:<6}{:<34}{:>12}{:>12}{:>12}{:>12}{:>20}{:>8}  {}\n";
  std::string text =
      "every choice (per rank; rows: the largest micro-batch that fits)\n" + fmt::format(kRow,
                                                                                         "stage",
                                                                                         "offload",
                                                                                         "device",
                                                                                         "host",
                                                                                         "in files",
                                                                                         "traffic",
                                                                                         "file I/O",
                                                                                         "rows",
                                                                                         "");
  for (const Choice& choice : plan.table) {
    if (choice.status == plan::Status::kNoEffect) {
      continue;  // another row says the same
    }
    text += fmt::format(kRow,
                        choice.stage,
                        plan::offload_name(choice.offload),
                        byte_text(choice.needs.device.total()),
                        byte_text(choice.needs.host),
                        byte_text(choice.needs.files),
                        byte_text(choice.traffic.total()),
                        file_text(choice),
                        choice.largest_micro_batch,
                        fit_text(choice));
  }
  return text;
}

}  // namespace

std::string plan_page(const Plan& plan,
                      const std::string& device_source,
                      const std::vector<std::string>& notes) {
  std::string text = head(plan) + purposes(plan) + verdict(plan, device_source) + largest(plan) +
                     advice(plan) + accumulation(plan) + traffic(plan) + files(plan) + table(plan);
  for (const std::string& note : notes) {
    text += "note: " + note + "\n";
  }
  return text;
}

}  // namespace zeroth::cli
