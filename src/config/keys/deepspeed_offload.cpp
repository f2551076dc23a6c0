#include "config/keys/deepspeed.h"

namespace zeroth::config::deepspeed {
namespace {

constexpr auto kParamDevice = "zero_optimization.offload_param.device";
constexpr auto kOptimizerDevice = "zero_optimization.offload_optimizer.device";
constexpr auto kHostMemory = "device memory is host memory here";
constexpr auto kFilesToCome = "state stays in memory: files are not used for it yet";

std::optional<std::string> parameters_can_rest(const Values& values) {
  if (!values.is(kParamDevice, "none")) {
    if (const auto why = only_with_stage_3()(values)) {
      return why;
    }
  }
  return values.is(kParamDevice, "cpu") ? std::optional<std::string>(kHostMemory) : std::nullopt;
}

std::optional<std::string> optimizer_can_rest(const Values& values) {
  return values.is(kOptimizerDevice, "cpu") ? std::optional<std::string>(kHostMemory)
                                            : std::nullopt;
}

std::optional<std::string> parameters_in_files(const Values& values) {
  if (!values.is(kParamDevice, "nvme")) {
    return "offload_param.device is not nvme";
  }
  return only_with_stage_3()(values);
}

std::optional<std::string> optimizer_in_files(const Values& values) {
  if (!values.is(kOptimizerDevice, "nvme")) {
    return "offload_optimizer.device is not nvme";
  }
  return std::nullopt;
}

std::optional<std::string> anything_in_files(const Values& values) {
  if (values.is(kParamDevice, "nvme") || values.is(kOptimizerDevice, "nvme")) {
    return std::nullopt;
  }
  return "nothing is offloaded to nvme";
}

Declarations parameter_keys() {
  return {
      planned(in_accelerate(key(kParamDevice,
                                one_of({"none", "cpu", "nvme"}, "none"),
                                "where parameters rest while they are not used"),
                            "deepspeed_config.offload_param_device"),
              {"none"},
              kFilesToCome,
              parameters_can_rest),
      planned(in_accelerate(key("zero_optimization.offload_param.nvme_path",
                                text(),
                                "folder for the files of parameters"),
                            "deepspeed_config.offload_param_nvme_path"),
              {},
              kFilesToCome,
              parameters_in_files),
      planned(key("zero_optimization.offload_param.buffer_count",
                  whole(kAtLeastOne, 5),
                  "buffers between files and memory"),
              {},
              kFilesToCome,
              parameters_in_files),
      planned(or_auto(key("zero_optimization.offload_param.buffer_size",
                          whole(kAtLeastOne, 100000000, "elements"),
                          "size of one buffer between files and memory")),
              {},
              kFilesToCome,
              parameters_in_files),
      planned(key("zero_optimization.offload_param.max_in_cpu",
                  whole(kNotNegative, 1000000000, "elements"),
                  "parameters kept in memory all the same"),
              {},
              kFilesToCome,
              parameters_in_files),
      harmless(
          key("zero_optimization.offload_param.pin_memory",
              flag(true),
              "lock the pages of offloaded parameters for faster copies"),
          "parameters in host memory are used where they lie: nothing copies them to a device"),
  };
}

Declarations optimizer_state_keys() {
  return {
      planned(in_accelerate(key(kOptimizerDevice,
                                one_of({"none", "cpu", "nvme"}, "none"),
                                "where the optimizer's state rests"),
                            "deepspeed_config.offload_optimizer_device"),
              {"none"},
              kFilesToCome,
              optimizer_can_rest),
      planned(in_accelerate(key("zero_optimization.offload_optimizer.nvme_path",
                                text(),
                                "folder for the files of the optimizer's state"),
                            "deepspeed_config.offload_optimizer_nvme_path"),
              {},
              kFilesToCome,
              optimizer_in_files),
      planned(key("zero_optimization.offload_optimizer.buffer_count",
                  whole(kAtLeastOne, 4),
                  "buffers between files and the optimizer"),
              {},
              kFilesToCome,
              optimizer_in_files),
      harmless(key("zero_optimization.offload_optimizer.pin_memory",
                   flag(true),
                   "lock the pages of the optimizer's state for faster copies"),
               "the optimizer works where its state lies: no gradient is copied to it"),
      planned(key("zero_optimization.offload_optimizer.pipeline_read",
                  flag(false),
                  "read the next piece of state while one is updated"),
              {},
              kFilesToCome,
              optimizer_in_files),
      planned(key("zero_optimization.offload_optimizer.pipeline_write",
                  flag(false),
                  "write the last piece of state while one is updated"),
              {},
              kFilesToCome,
              optimizer_in_files),
      planned(key("zero_optimization.offload_optimizer.fast_init",
                  flag(false),
                  "write the first state without reading it back"),
              {},
              kFilesToCome,
              optimizer_in_files),
      planned(key("zero_optimization.offload_optimizer.ratio",
                  number(kShare, 1.0),
                  "share of the optimizer's state that is offloaded"),
              {1.0},
              kFilesToCome,
              optimizer_in_files),
      refused(key("zero_optimization.offload_optimizer.super_offload",
                  flag(false),
                  "a schedule for processors that share memory with their GPU"),
              {false},
              "it is made for one kind of GPU; use offload_optimizer.device"),
      harmless(key("zero_optimization.offload_optimizer.cpuadam_cores_perc",
                   number(kShare, 0.8),
                   "share of cores for the optimizer under super_offload"),
               "threads says how many cores the optimizer has"),
  };
}

// true is a device; false says that nothing is offloaded.
std::function<std::vector<Part>(const Json&)> device_of_switch(std::string device_key) {
  return [device_key](const Json& value) -> std::vector<Part> {
    return {{device_key, value.get<bool>() ? "cpu" : "none"}};
  };
}

std::vector<Part> both_pinned(const Json& value) {
  return {{"zero_optimization.offload_param.pin_memory", value},
          {"zero_optimization.offload_optimizer.pin_memory", value}};
}

Declarations older_keys() {
  return {
      replaced_by(kOptimizerDevice,
                  stands_for(key("zero_optimization.cpu_offload",
                                 flag(nullptr),
                                 "the old word for offload_optimizer.device: true is cpu"),
                             device_of_switch(kOptimizerDevice))),
      replaced_by(kParamDevice,
                  stands_for(key("zero_optimization.cpu_offload_param",
                                 flag(nullptr),
                                 "the old word for offload_param.device: true is cpu"),
                             device_of_switch(kParamDevice))),
      replaced_by("zero_optimization.offload_optimizer.pin_memory",
                  stands_for(key("zero_optimization.cpu_offload_use_pin_memory",
                                 flag(nullptr),
                                 "the old word for both blocks' pin_memory"),
                             both_pinned)),
  };
}

Declarations file_keys() {
  return {
      planned(key("aio.block_size",
                  whole(kAtLeastOne, 1048576, "bytes"),
                  "size of one request to a file"),
              {},
              kFilesToCome,
              anything_in_files),
      planned(key("aio.queue_depth", whole(kAtLeastOne, 8), "requests in flight at one time"),
              {},
              kFilesToCome,
              anything_in_files),
      planned(key("aio.intra_op_parallelism",
                  whole(kAtLeastOne, 1, "threads"),
                  "threads that share one read or write"),
              {},
              kFilesToCome,
              anything_in_files),
      planned(key("aio.single_submit", flag(false), "hand requests over one by one"),
              {},
              kFilesToCome,
              anything_in_files),
      planned(key("aio.overlap_events", flag(true), "hand over requests while others end"),
              {},
              kFilesToCome,
              anything_in_files),
      harmless(key("aio.use_gds", flag(false), "read from files straight into a GPU"),
               "files are read into host memory, where the state is used"),
      harmless(key("aio.thread_count",
                   whole(kAtLeastOne, 1, "threads"),
                   "intra_op_parallelism as DeepSpeed's documents spell it"),
               "DeepSpeed's code never reads it: intra_op_parallelism is its word for threads"),
  };
}

}  // namespace

Declarations offload_keys() {
  return joined({parameter_keys(), optimizer_state_keys(), older_keys(), file_keys()});
}

}  // namespace zeroth::config::deepspeed
