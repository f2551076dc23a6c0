#include "config/schedule_rules.h"

#include "arithmetic/updates.h"
#include <fmt/format.h>

namespace zeroth::config {
namespace {

// The key by which a parameter of the arithmetic is set.
const Declaration* key_of(const std::string& parameter, ScheduleKind kind) {
  if (parameter == "warmup_num_steps" || parameter == "warmup_steps") {
    return find_declaration("warmup_steps");
  }
  const std::string prefix =
      arithmetic::is_deepspeed(kind) ? "scheduler.params." : "lr_scheduler_kwargs.";
  const Declaration* key = find_declaration(prefix + parameter);
  return key != nullptr ? key : find_declaration("learning_rate");
}

std::string after_warmup(const arithmetic::Schedule& schedule, std::int64_t total_updates) {
  if (schedule.warmup_end() >= total_updates) {
    return fmt::format("the warm-up of {} never ends: {:.3e} is not reached",
                       schedule.warmup_updates,
                       schedule.peak);
  }
  return fmt::format(
      "{:.3e} after warm-up of {}", schedule.at(schedule.warmup_end()), schedule.warmup_updates);
}

}  // namespace

arithmetic::Schedule schedule_of(const RunConfig& config, std::int64_t total_updates) {
  const ScheduleSettings& settings = config.schedule;
  return {.kind = settings.kind,
          .peak = settings.warmup_max_lr.value_or(config.optimizer.learning_rate),
          .warmup_updates = arithmetic::warmup_updates(
              settings.warmup_steps, settings.warmup_ratio, total_updates),
          .total_updates = settings.total_num_steps.value_or(total_updates),
          .curve = settings.curve,
          .warmup = settings.warmup,
          .one_cycle = settings.one_cycle,
          .range_test = settings.range_test};
}

void check_schedule(const Values& values, const RunConfig& config, Problems& problems) {
  const bool length_known = config.schedule.max_steps > 0;
  arithmetic::Schedule schedule = schedule_of(config, length_known ? config.schedule.max_steps : 0);
  const bool by_ratio = config.schedule.warmup_steps == 0 && config.schedule.warmup_ratio > 0;
  if (by_ratio && !length_known) {
    schedule.warmup_updates = 1;  // some; how many is known with the rows
  }
  for (const arithmetic::ScheduleProblem& problem : arithmetic::problems_of(schedule)) {
    const Declaration* key = key_of(problem.parameter, schedule.kind);
    const std::string source = values.source(key->name).text;
    problems.add({.kind = ProblemKind::kRange,
                  .key = key->name,
                  .message = fmt::format("{} {} (lr_scheduler_type {}; {})",
                                         problem.parameter,
                                         problem.message,
                                         arithmetic::name_of(schedule.kind),
                                         source),
                  .sources = {source}});
  }
}

std::string rates_line(const arithmetic::Schedule& schedule, std::int64_t total_updates) {
  return fmt::format("learning rate (in updates): {:.3e} first, {}, {:.3e} middle, {:.3e} last",
                     schedule.at(0),
                     after_warmup(schedule, total_updates),
                     schedule.at(total_updates / 2),
                     schedule.at(total_updates - 1));
}

}  // namespace zeroth::config
