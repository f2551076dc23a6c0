#include "plan/plan.h"

#include <array>

#include "plan/packing.h"
#include <fmt/format.h>

namespace zeroth::plan {
namespace {

constexpr std::array kOffloads{Offload{},
                               Offload{.optimizer = Place::kHost},
                               Offload{.optimizer = Place::kHost, .parameters = Place::kHost},
                               Offload{.optimizer = Place::kFiles},
                               Offload{.optimizer = Place::kFiles, .parameters = Place::kFiles}};

// Whether a choice is another one under a second name: below stage 3 parameters never rest in
// files, and one rank alone has nobody to share with, so that its stages say what files hold.
bool repeats_another(const PlanInput& input) {
  const bool no_weights = input.offload.parameters == Place::kFiles && input.stage < 3;
  const bool alone = input.ranks == 1 && input.stage > 0;
  return no_weights || (alone && (!input.offload.uses_files() || input.stage == 1 ||
                                  (input.stage == 3 && input.offload.parameters != Place::kFiles)));
}

bool fits(const Needs& needs, const PlanInput& input, const Budget& budget) {
  // Where the ranks share the host's memory, what is on the host is beside what they hold.
  const Bytes beside = input.own_memory ? Bytes() : needs.host;
  const bool on_device = needs.device.total() + beside <= budget.device;
  const bool on_host = !budget.host || needs.host * input.ranks_on_host() <= *budget.host;
  return on_device && on_host;
}

// More rows never need less, so the border is found by halving.
std::int64_t largest_micro_batch(PlanInput input, const ModelSize& model, const Budget& budget) {
  constexpr std::int64_t kMostRows = 1'000'000'000;
  if (input.chooses_packed) {  // packing makes way for rows
    input.packed = PackedFor::kNothing;
  }
  const auto fits_with = [&](std::int64_t rows) {
    input.micro_batch_rows = rows;
    return fits(needs_of(input, model), input, budget);
  };
  std::int64_t fitting = 0;
  std::int64_t too_many = 1;
  while (too_many <= kMostRows && fits_with(too_many)) {
    fitting = too_many;
    too_many *= 2;
  }
  while (too_many - fitting > 1) {
    const std::int64_t middle = fitting + (too_many - fitting) / 2;
    (fits_with(middle) ? fitting : too_many) = middle;
  }
  return fitting;
}

bool anything_away(const Offload& offload) {
  return offload.optimizer != Place::kDevice || offload.parameters != Place::kDevice;
}

void judge(const PlanInput& input, Choice& choice) {
  const Offload& offload = choice.offload;
  if (!anything_away(offload)) {
    return;
  }
  const bool to_host = offload.optimizer == Place::kHost || offload.parameters == Place::kHost;
  choice.status = to_host && input.own_memory ? Status::kPlanned : Status::kBuilt;
  if (to_host && !input.own_memory && !offload.uses_files()) {
    choice.status = Status::kNoEffect;
    choice.why = "device memory is host memory here";
  } else if (offload.parameters == Place::kHost && choice.stage < 3) {
    choice.status = Status::kNoEffect;
    choice.why = "parameters rest elsewhere at stage 3 alone";
  }
}

// What rests on the host anyway does not move there.
Offload in_effect(const PlanInput& input) {
  Offload offload = input.offload;
  for (Place* place : {&offload.optimizer, &offload.parameters}) {
    if (*place == Place::kHost && !input.own_memory) {
      *place = Place::kDevice;
    }
  }
  return offload;
}

}  // namespace

Choice choice_of(const PlanInput& input, const ModelSize& model, const Budget& budget) {
  Choice choice{.stage = input.stage, .offload = input.offload};
  judge(input, choice);
  PlanInput acting = input;
  acting.offload = in_effect(input);
  acting = settle_packing(acting, model, packing_room(input, budget.device));
  choice.needs = needs_of(acting, model);
  choice.traffic = traffic_of(acting, model);
  choice.file_traffic = file_traffic(acting, model);
  if (budget.disk && acting.offload.uses_files()) {
    const auto seconds = [&](Bytes bytes, double speed) {
      return static_cast<double>((bytes * input.ranks_on_host()).count()) / speed;
    };
    choice.file_seconds = seconds(choice.file_traffic.read, budget.disk->read_bytes_per_s) +
                          seconds(choice.file_traffic.written, budget.disk->write_bytes_per_s);
  }
  choice.fits = fits(choice.needs, acting, budget);
  choice.largest_micro_batch = largest_micro_batch(acting, model, budget);
  return choice;
}

Plan make_plan(const PlanInput& input, const Budget& budget) {
  const ModelSize model = size_of(input);
  Plan plan{.input = input,
            .budget = budget,
            .trainable = model.trainable,
            .parameters = model.trainable + model.frozen,
            .chosen = choice_of(input, model, budget),
            .saving = while_saving(input, model)};
  for (int stage = 0; stage <= 3; ++stage) {
    for (const Offload& offload : kOffloads) {
      PlanInput other = input;
      other.stage = stage;
      other.offload = offload;
      if (!repeats_another(other)) {
        plan.table.push_back(choice_of(other, model, budget));
      }
    }
  }
  return plan;
}

std::string offload_name(const Offload& offload) {
  const auto to = [](Place place) { return place == Place::kHost ? "host" : "nvme"; };
  const bool optimizer = offload.optimizer != Place::kDevice;
  const bool parameters = offload.parameters != Place::kDevice;
  if (optimizer && parameters && offload.optimizer != offload.parameters) {
    return fmt::format(
        "optimizer to {}, parameters to {}", to(offload.optimizer), to(offload.parameters));
  }
  return optimizer && parameters
             ? fmt::format("optimizer and parameters to {}", to(offload.optimizer))
         : optimizer  ? fmt::format("optimizer to {}", to(offload.optimizer))
         : parameters ? fmt::format("parameters to {}", to(offload.parameters))
                      : "none";
}

}  // namespace zeroth::plan
