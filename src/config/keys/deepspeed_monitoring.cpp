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
      planned(key("tensorboard.enabled", boolean(), false, "write TensorBoard's events"),
              {false},
              kEventsToCome),
      planned(key("tensorboard.output_path", text(), nullptr, "folder for the events"),
              {},
              kEventsToCome,
              in_events),
      planned(key("tensorboard.job_name",
                  text(),
                  "DeepSpeedJobName",
                  "folder for the events of this run"),
              {},
              kEventsToCome,
              in_events),
      planned(
          key("csv_monitor.enabled", boolean(), false, "write a CSV table"), {false}, kTableToCome),
      planned(key("csv_monitor.output_path", text(), nullptr, "folder for the CSV table"),
              {},
              kTableToCome,
              in_table),
      planned(key("csv_monitor.job_name",
                  text(),
                  "DeepSpeedJobName",
                  "folder for the CSV table of this run"),
              {},
              kTableToCome,
              in_table),
  };
}

Declarations service_records() {
  return {
      refused(key("wandb.enabled", boolean(), false, "send records to Weights & Biases"),
              {false},
              "nothing is sent over a network; metrics.jsonl has every update"),
      detail(key("wandb.group", text(), nullptr, "the run's group at Weights & Biases"),
             kNothingSent),
      detail(key("wandb.team", text(), nullptr, "the run's team at Weights & Biases"),
             kNothingSent),
      detail(key("wandb.project", text(), "deepspeed", "the run's project at Weights & Biases"),
             kNothingSent),
      refused(key("comet.enabled", boolean(), false, "send records to Comet"),
              {false},
              "nothing is sent over a network; metrics.jsonl has every update"),
      detail(key("comet.samples_log_interval",
                 integer(kAtLeastOne, "rows"),
                 100,
                 "rows between two records for Comet"),
             kNothingSent),
      detail(key("comet.project", text(), nullptr, "the run's project at Comet"), kNothingSent),
      detail(key("comet.workspace", text(), nullptr, "the run's workspace at Comet"), kNothingSent),
      detail(key("comet.api_key", text(), nullptr, "the key to Comet's service"), kNothingSent),
      detail(key("comet.experiment_name", text(), nullptr, "the run's name at Comet"),
             kNothingSent),
      detail(key("comet.experiment_key", text(), nullptr, "the run's identity at Comet"),
             kNothingSent),
      detail(key("comet.online", boolean(), nullptr, "send to Comet at once"), kNothingSent),
      detail(key("comet.mode", text(), nullptr, "make a new experiment at Comet or go on with one"),
             kNothingSent),
  };
}

Declarations traffic_keys() {
  const Condition in_log = only_when_on("comms_logger.enabled");
  return {
      planned(key("comms_logger.enabled", boolean(), false, "log size and time of collectives"),
              {false},
              kTrafficToCome),
      planned(key("comms_logger.prof_all", boolean(), true, "log all kinds of collectives"),
              {},
              kTrafficToCome,
              in_log),
      planned(key("comms_logger.prof_ops", names(), Json::array(), "kinds of collectives to log"),
              {},
              kTrafficToCome,
              in_log),
      planned(key("comms_logger.verbose", boolean(), false, "a line for every collective"),
              {},
              kTrafficToCome,
              in_log),
      planned(key("comms_logger.debug", boolean(), false, "name the caller of each collective"),
              {},
              kTrafficToCome,
              in_log),
  };
}

Declarations profile_keys() {
  const Condition in_profile = only_when_on("flops_profiler.enabled");
  return {
      planned(key("flops_profiler.enabled", boolean(), false, "count operations and their time"),
              {false},
              kProfileToCome),
      planned(key("flops_profiler.recompute_fwd_factor",
                  number(),
                  0.0,
                  "forwards that recomputation adds, in the count"),
              {},
              kProfileToCome,
              in_profile),
      planned(key("flops_profiler.profile_step",
                  integer(kAtLeastOne),
                  1,
                  "the update that is profiled"),
              {},
              kProfileToCome,
              in_profile),
      planned(key("flops_profiler.module_depth",
                  integer({.min = 0, .also = -1}),
                  -1,
                  "levels of modules in the profile; -1: all"),
              {},
              kProfileToCome,
              in_profile),
      planned(key("flops_profiler.top_modules",
                  integer(kAtLeastOne),
                  1,
                  "costliest modules of each level in the profile"),
              {},
              kProfileToCome,
              in_profile),
      planned(key("flops_profiler.detailed", boolean(), true, "a line for every module"),
              {},
              kProfileToCome,
              in_profile),
      planned(key("flops_profiler.output_file", text(), nullptr, "file for the profile"),
              {},
              kProfileToCome,
              in_profile),
      harmless(key("timers.throughput.enabled", boolean(), true, "measure rows a second"),
               "metrics.jsonl has tokens_per_second at every update"),
      harmless(key("timers.throughput.synchronized",
                   boolean(),
                   true,
                   "wait for the device before time is taken"),
               "an update has ended when its time is taken: there is no device to wait for"),
  };
}

}  // namespace

Declarations monitoring_keys() {
  Declarations keys = file_records();
  for (Declarations more : {service_records(), traffic_keys(), profile_keys()}) {
    keys.insert(keys.end(), more.begin(), more.end());
  }
  return keys;
}

}  // namespace zeroth::config::deepspeed
