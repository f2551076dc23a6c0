#include "config/keys/deepspeed.h"

namespace zeroth::config::deepspeed {
namespace {

constexpr auto kEventsToCome = "metrics.jsonl is written; TensorBoard's events are not yet";
constexpr auto kTableToCome = "metrics.jsonl is written; a CSV table is not yet";
constexpr auto kTrafficToCome = "collectives are not counted in the records yet";
constexpr auto kProfileToCome = "no profile of operations is written yet";
constexpr auto kNothingSent = "nothing is sent over a network";

Declarations file_records() {
  const Condition in_events = only_when_on("tensorboard.enabled");
  const Condition in_table = only_when_on("csv_monitor.enabled");
  return {
      planned(key("tensorboard.enabled", flag(false), "write TensorBoard's events"),
              {false},
              kEventsToCome),
      planned(key("tensorboard.output_path", text(), "folder for the events"),
              {},
              kEventsToCome,
              in_events),
      planned(key("tensorboard.job_name",
                  text("DeepSpeedJobName"),
                  "folder for the events of this run"),
              {},
              kEventsToCome,
              in_events),
      planned(key("csv_monitor.enabled", flag(false), "write a CSV table"), {false}, kTableToCome),
      planned(key("csv_monitor.output_path", text(), "folder for the CSV table"),
              {},
              kTableToCome,
              in_table),
      planned(key("csv_monitor.job_name",
                  text("DeepSpeedJobName"),
                  "folder for the CSV table of this run"),
              {},
              kTableToCome,
              in_table),
  };
}

Declarations service_records() {
  return {
      refused(key("wandb.enabled", flag(false), "send records to Weights & Biases"),
              {false},
              "nothing is sent over a network; metrics.jsonl has every update"),
      detail(key("wandb.group", text(), "the run's group at Weights & Biases"), kNothingSent),
      detail(key("wandb.team", text(), "the run's team at Weights & Biases"), kNothingSent),
      detail(key("wandb.project", text("deepspeed"), "the run's project at Weights & Biases"),
             kNothingSent),
      refused(key("comet.enabled", flag(false), "send records to Comet"),
              {false},
              "nothing is sent over a network; metrics.jsonl has every update"),
      detail(key("comet.samples_log_interval",
                 whole(kAtLeastOne, 100, "rows"),
                 "rows between two records for Comet"),
             kNothingSent),
      detail(key("comet.project", text(), "the run's project at Comet"), kNothingSent),
      detail(key("comet.workspace", text(), "the run's workspace at Comet"), kNothingSent),
      detail(key("comet.api_key", password(), "the key to Comet's service"), kNothingSent),
      detail(key("comet.experiment_name", text(), "the run's name at Comet"), kNothingSent),
      detail(key("comet.experiment_key", text(), "the run's identity at Comet"), kNothingSent),
      detail(key("comet.online", flag(nullptr), "send to Comet at once"), kNothingSent),
      detail(key("comet.mode", text(), "make a new experiment at Comet or go on with one"),
             kNothingSent),
  };
}

Declarations traffic_keys() {
  const Condition in_log = only_when_on("comms_logger.enabled");
  return {
      planned(key("comms_logger.enabled", flag(false), "log size and time of collectives"),
              {false},
              kTrafficToCome),
      planned(key("comms_logger.prof_all", flag(true), "log all kinds of collectives"),
              {},
              kTrafficToCome,
              in_log),
      planned(key("comms_logger.prof_ops", names(Json::array()), "kinds of collectives to log"),
              {},
              kTrafficToCome,
              in_log),
      planned(key("comms_logger.verbose", flag(false), "a line for every collective"),
              {},
              kTrafficToCome,
              in_log),
      planned(key("comms_logger.debug", flag(false), "name the caller of each collective"),
              {},
              kTrafficToCome,
              in_log),
  };
}

Declarations profile_keys() {
  const Condition in_profile = only_when_on("flops_profiler.enabled");
  return {
      planned(key("flops_profiler.enabled", flag(false), "count operations and their time"),
              {false},
              kProfileToCome),
      planned(key("flops_profiler.recompute_fwd_factor",
                  number(kNotNegative, 0.0),
                  "forwards that recomputation adds, in the count"),
              {},
              kProfileToCome,
              in_profile),
      planned(
          key("flops_profiler.profile_step", whole(kAtLeastOne, 1), "the update that is profiled"),
          {},
          kProfileToCome,
          in_profile),
      planned(key("flops_profiler.module_depth",
                  whole(Range{.min = 0, .also = -1}, -1),
                  "levels of modules in the profile; -1: all"),
              {},
              kProfileToCome,
              in_profile),
      planned(key("flops_profiler.top_modules",
                  whole(kAtLeastOne, 1),
                  "costliest modules of each level in the profile"),
              {},
              kProfileToCome,
              in_profile),
      planned(key("flops_profiler.detailed", flag(true), "a line for every module"),
              {},
              kProfileToCome,
              in_profile),
      planned(key("flops_profiler.output_file", text(), "file for the profile"),
              {},
              kProfileToCome,
              in_profile),
      harmless(key("timers.throughput.enabled", flag(true), "measure rows a second"),
               "metrics.jsonl has tokens_per_second at every update"),
      harmless(key("timers.throughput.synchronized",
                   flag(true),
                   "wait for the device before time is taken"),
               "an update has ended when its time is taken: there is no device to wait for"),
  };
}

}  // namespace

Declarations monitoring_keys() {
  return joined({file_records(), service_records(), traffic_keys(), profile_keys()});
}

}  // namespace zeroth::config::deepspeed
