#include "plan/report.h"

#include <algorithm>

#include "base/text.h"
#include "plan/byte_size.h"
#include "plan/packing.h"
#include <fmt/format.h>

namespace zeroth::plan {
namespace {

const char* status_name(Status status) {
  switch (status) {
    case Status::kBuilt:
      return "built";
    case Status::kPlanned:
      return "planned";
    case Status::kNoEffect:
      break;
  }
  return "no_effect";
}

// As a ds_config.json says it.
const char* device_name(Place place) {
  switch (place) {
    case Place::kDevice:
      return "none";
    case Place::kHost:
      return "cpu";
    case Place::kFiles:
      break;
  }
  return "nvme";
}

Json purposes_json(const DeviceBytes& bytes) {
  Json json = Json::object();
  for (const auto& [name, count] : by_purpose(bytes)) {
    json[name] = count.count();
  }
  return json;
}

Json choice_json(const Choice& choice) {
  return {
      {"stage", choice.stage},
      {"offload_optimizer", device_name(choice.offload.optimizer)},
      {"offload_param", device_name(choice.offload.parameters)},
      {"status", status_name(choice.status)},
      {"why", choice.why},
      {"device_bytes", choice.needs.device.total().count()},
      {"host_bytes", choice.needs.host.count()},
      {"file_bytes", choice.needs.files.count()},
      {"traffic_bytes_per_update", choice.traffic.total().count()},
      {"file_read_bytes_per_update", choice.file_traffic.read.count()},
      {"file_written_bytes_per_update", choice.file_traffic.written.count()},
      {"file_seconds_per_update", choice.file_seconds ? Json(*choice.file_seconds) : Json(nullptr)},
      {"fits", choice.fits},
      {"largest_micro_batch", choice.largest_micro_batch}};
}

// What moves from and to files in an update.
Json files_json(const Plan& plan) {
  const Choice& chosen = plan.chosen;
  const auto& disk = plan.budget.disk;
  return {{"read_bytes", chosen.file_traffic.read.count()},
          {"written_bytes", chosen.file_traffic.written.count()},
          {"seconds", chosen.file_seconds ? Json(*chosen.file_seconds) : Json(nullptr)},
          {"disk_read_bytes_per_second", disk ? Json(disk->read_bytes_per_s) : Json(nullptr)},
          {"disk_write_bytes_per_second", disk ? Json(disk->write_bytes_per_s) : Json(nullptr)}};
}

std::string rows_note(const PlanInput& input) {
  return fmt::format(
      "rows are taken to be cutoff_len {} tokens long with {} targets: shorter rows need less",
      input.row_tokens,
      input.targets_per_row());
}

std::string window_note(const PlanInput& input) {
  return input.own_memory
             ? "the gather window is whole on each rank: its device has memory of its own"
             : fmt::format(
                   "the gather window is shared by the {} ranks of a host; each counts "
                   "its part",
                   input.ranks_on_host());
}

// What comes after the last update, where it is more than is planned for.
void add_end_of_a_run(const Plan& plan, std::vector<std::string>& notes) {
  const Bytes planned = std::min(plan.budget.device, plan.chosen.needs.device.total());
  if (plan.saving > planned) {
    notes.push_back(fmt::format("at the end the result is collected unit by unit: {}{}",
                                byte_text(plan.saving),
                                plan.saving > plan.budget.device ? ", more than there is" : ""));
  }
}

std::string frozen_note(const PlanInput& input) {
  return input.share_frozen ? "frozen weights are there once for all ranks of a host"
                            : "frozen weights are whole on each rank, at every stage";
}

}  // namespace

std::vector<std::pair<std::string, Bytes>> by_purpose(const DeviceBytes& bytes) {
  return {{"weights", bytes.states.weights},
          {"gradients", bytes.states.gradients},
          {"master", bytes.states.master},
          {"moments", bytes.states.moments},
          {"activations", bytes.activations},
          {"logits", bytes.logits},
          {"buffers", bytes.buffers},
          {"gather_window", bytes.gather_window}};
}

Json to_json(const Plan& plan) {
  const PlanInput& input = plan.input;
  const Choice& chosen = plan.chosen;
  Json table = Json::array();
  for (const Choice& choice : plan.table) {
    table.push_back(choice_json(choice));
  }
  return {{"parameters", {{"total", plan.parameters}, {"trainable", plan.trainable}}},
          {"bytes_per_rank", purposes_json(chosen.needs.device)},
          {"total", chosen.needs.device.total().count()},
          {"host_bytes_per_rank", chosen.needs.host.count()},
          {"file_bytes_per_rank", chosen.needs.files.count()},
          {"files", files_json(plan)},
          {"device_memory", plan.budget.device.count()},
          {"fits", chosen.fits},
          {"largest_micro_batch", chosen.largest_micro_batch},
          {"status", status_name(chosen.status)},
          {"stage", input.stage},
          {"ranks", input.ranks},
          {"ranks_per_node", input.ranks_on_host()},
          {"micro_batch_size", input.micro_batch_rows},
          {"gradient_accumulation_steps", input.accumulation},
          {"row_tokens", input.row_tokens},
          {"traffic",
           {{"gradients", chosen.traffic.gradients.count()},
            {"weights", chosen.traffic.weights.count()},
            {"bytes_per_update", chosen.traffic.total().count()}}},
          {"saving_bytes", plan.saving.count()},
          {"table", std::move(table)}};
}

std::vector<std::string> notes_of(const Plan& plan) {
  const PlanInput& input = plan.input;
  std::vector<std::string> notes{rows_note(input)};
  if (!input.trains_all()) {
    notes.push_back(frozen_note(input));
    const std::string packed = packing_line(input, packing_room(input, plan.budget.device));
    if (!packed.empty()) {
      notes.push_back(packed);
    }
  }
  if (sharding_of(input).parameters) {
    notes.push_back(window_note(input));
  }
  if (plan.chosen.needs.evaluation_decides) {
    notes.push_back(
        fmt::format("the most is held while evaluating {} rows "
                    "(per_device_eval_batch_size), not while training",
                    input.eval_rows));
  }
  if (plan.budget.disk) {
    constexpr double kGB = 1e9;
    notes.push_back(fmt::format("the disk was measured now: {:.1f} GB/s read, {:.1f} GB/s written",
                                plan.budget.disk->read_bytes_per_s / kGB,
                                plan.budget.disk->write_bytes_per_s / kGB));
  } else {
    notes.emplace_back(
        "how long files take is not known: give offload_optimizer.nvme_path, and the folder's disk "
        "is measured");
  }
  add_end_of_a_run(plan, notes);
  if (input.own_memory) {
    notes.emplace_back(
        "Zeroth computes on processors so far; a device with memory of its own is taken to hold "
        "the same");
    if (!plan.budget.host) {
      notes.emplace_back("what goes to the host is taken to fit there: --host_memory checks it");
    }
  }
  notes.emplace_back(
      "not counted: the program and its libraries, the data's rows, scratch of matrix products");
  return notes;
}

std::string memory_line(const PlanInput& input) {
  const DeviceBytes bytes = needs_of(input, size_of(input)).device;
  std::vector<std::string> parts;
  for (const auto& [name, count] : by_purpose(bytes)) {
    if (count.count() > 0) {
      parts.push_back(fmt::format("{} {}", name, byte_text(count)));
    }
  }
  return fmt::format("memory plan: {} per rank at the most, with rows of {} tokens: {}",
                     byte_text(bytes.total()),
                     input.row_tokens,
                     join(parts, ", "));
}

Json memory_json(const PlanInput& input) {
  const DeviceBytes bytes = needs_of(input, size_of(input)).device;
  return {{"bytes_per_rank", purposes_json(bytes)}, {"total", bytes.total().count()}};
}

}  // namespace zeroth::plan
