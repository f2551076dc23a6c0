// Where state rests between its uses: offload_param, offload_optimizer and aio.
#include "config/field.h"
#include "config/keys/deepspeed.h"
#include "config/offload_names.h"

namespace zeroth::config::deepspeed {
namespace {

constexpr auto kIo = "aio.backend";
constexpr auto kHostMemory = "device memory is host memory here";
// The most that is asked of the system: the longest queue of io_uring, threads that a process gets,
// bytes that one system call takes.
constexpr Range kRequests{.min = 1, .max = 32768};
constexpr Range kThreads{.min = 1, .max = 1024};
constexpr Range kBlockBytes{.min = 1, .max = 1e9};

using Reason = std::optional<std::string>;

// `plan` may speak of devices that have memory of their own.
bool device_is_host(const Values& values) {
  return values["device_memory"].is_null();
}

Reason parameters_can_rest(const Values& values) {
  if (!values.is(kParamDevice, "none")) {
    if (const auto why = only_with_stage_3()(values)) {
      return why;
    }
  }
  return values.is(kParamDevice, "cpu") && device_is_host(values) ? Reason(kHostMemory)
                                                                  : std::nullopt;
}

Reason optimizer_can_rest(const Values& values) {
  return values.is(kOptimizerDevice, "cpu") && device_is_host(values) ? Reason(kHostMemory)
                                                                      : std::nullopt;
}

Reason parameters_in_files(const Values& values) {
  if (!values.is(kParamDevice, "nvme")) {
    return "offload_param.device is not nvme";
  }
  return only_with_stage_3()(values);
}

Reason parameters_of_several_ranks(const Values& values) {
  if (const auto why = parameters_in_files(values)) {
    return why;
  }
  return values.is("ranks", 1)
             ? Reason("one rank alone reads weights straight to where they are used")
             : std::nullopt;
}

Reason optimizer_in_files(const Values& values) {
  return values.is(kOptimizerDevice, "nvme") ? std::nullopt
                                             : Reason("offload_optimizer.device is not nvme");
}

Reason anything_in_files(const Values& values) {
  if (values.is(kOptimizerDevice, "nvme") || !parameters_in_files(values)) {
    return std::nullopt;
  }
  return "nothing is offloaded to nvme";
}

// A detail of one of the two ways to move bytes.
Condition only_with_io(const std::string& io) {
  return [io](const Values& values) -> Reason {
    if (const auto why = anything_in_files(values)) {
      return why;
    }
    return values.is(kIo, "auto") || values.is(kIo, io)
               ? std::nullopt
               : Reason(std::string(kIo) + " is not " + io);
  };
}

Declaration with_field(Declaration key, Condition without_effect, Field field) {
  key.section = "ZeRO";
  key.commands = kUpdates;
  key.without_effect = std::move(without_effect);
  key.field = std::move(field);
  return key;
}

template <typename T>
Declaration acting(Declaration key, Condition without_effect, T OffloadSettings::*member) {
  return with_field(std::move(key), std::move(without_effect), field(&RunConfig::offload, member));
}

template <typename T>
Declaration acting(Declaration key, Condition without_effect, T offload::IoOptions::*member) {
  return with_field(std::move(key),
                    std::move(without_effect),
                    field(&RunConfig::offload, &OffloadSettings::transfers, member));
}

Declarations parameter_keys() {
  return {
      acting(in_accelerate(key(kParamDevice,
                               one_of({"none", "cpu", "nvme"}, "none"),
                               "where parameters rest while they are not used; changes no number"),
                           "deepspeed_config.offload_param_device"),
             parameters_can_rest,
             &OffloadSettings::parameters),
      acting(in_accelerate(key(kParamPath,
                               text(),
                               "folder for the files of parameters; they have no names there and "
                               "go with the run"),
                           "deepspeed_config.offload_param_nvme_path"),
             parameters_in_files,
             &OffloadSettings::parameter_path),
      acting(key("zero_optimization.offload_param.buffer_count",
                 whole(kAtLeastOne, nullptr),
                 "units whose shards may be on their way from files at one time; not given: as "
                 "many as are gathered ahead"),
             parameters_of_several_ranks,
             &OffloadSettings::parameter_buffers),
      harmless(or_auto(key("zero_optimization.offload_param.buffer_size",
                           whole(kAtLeastOne, 100000000, "elements"),
                           "size of one buffer between files and memory")),
               "a buffer has room for the largest shard of a unit, and no more"),
      acting(key("zero_optimization.offload_param.max_in_cpu",
                 whole(kNotNegative, 0, "elements"),
                 "parameters of a rank that stay in memory all the same"),
             parameters_in_files,
             &OffloadSettings::parameters_in_memory),
      harmless(
          key("zero_optimization.offload_param.pin_memory",
              flag(true),
              "lock the pages of offloaded parameters for faster copies"),
          "parameters in host memory are used where they lie: nothing copies them to a device"),
  };
}

Declarations optimizer_state_keys() {
  return {
      acting(in_accelerate(key(kOptimizerDevice,
                               one_of({"none", "cpu", "nvme"}, "none"),
                               "where the optimizer's state rests, and gradients that are kept in "
                               "shards; changes no number"),
                           "deepspeed_config.offload_optimizer_device"),
             optimizer_can_rest,
             &OffloadSettings::optimizer),
      acting(in_accelerate(key(kOptimizerPath,
                               text(),
                               "folder for the files of the optimizer's state; they have no names "
                               "there and go with the run"),
                           "deepspeed_config.offload_optimizer_nvme_path"),
             optimizer_in_files,
             &OffloadSettings::optimizer_path),
      harmless(key("zero_optimization.offload_optimizer.buffer_count",
                   whole(kAtLeastOne, 4),
                   "buffers between files and the optimizer"),
               "pipeline_read and pipeline_write say how many pieces of state are in memory, "
               "sub_group_size how large they are"),
      harmless(key("zero_optimization.offload_optimizer.pin_memory",
                   flag(true),
                   "lock the pages of the optimizer's state for faster copies"),
               "the optimizer works where its state lies: no gradient is copied to it"),
      acting(key("zero_optimization.offload_optimizer.pipeline_read",
                 flag(true),
                 "read the next piece of state while one is updated; false needs less memory"),
             optimizer_in_files,
             &OffloadSettings::reads_ahead),
      acting(key("zero_optimization.offload_optimizer.pipeline_write",
                 flag(true),
                 "write the last piece of state while one is updated; false needs less memory"),
             optimizer_in_files,
             &OffloadSettings::writes_behind),
      harmless(key("zero_optimization.offload_optimizer.fast_init",
                   flag(false),
                   "write the first state without reading it back"),
               "a new file reads as zeros: nothing is read, and no moment is written, before the "
               "first update"),
      acting(key("zero_optimization.offload_optimizer.ratio",
                 number(kShare, 1.0),
                 "share of the optimizer's state that is offloaded, by whole units"),
             optimizer_in_files,
             &OffloadSettings::optimizer_ratio),
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
      acting(key(kIo,
                 one_of(choices_of<OffloadIo>(), "auto"),
                 "how files are read and written; auto: what a short probe finds faster"),
             anything_in_files,
             &OffloadSettings::io),
      acting(key("aio.block_size",
                 whole(kBlockBytes, 1048576, "bytes"),
                 "size of one request to a file, a multiple of 4096"),
             anything_in_files,
             &offload::IoOptions::block_bytes),
      acting(
          key("aio.queue_depth", whole(kRequests, 128), "io_uring: requests in flight at one time"),
          only_with_io("io_uring"),
          &offload::IoOptions::depth),
      acting(key("aio.intra_op_parallelism",
                 whole(kThreads, 4, "threads"),
                 "threads: how many read and write"),
             only_with_io("threads"),
             &offload::IoOptions::threads),
      acting(key("aio.single_submit", flag(false), "io_uring: hand requests over one by one"),
             only_with_io("io_uring"),
             &offload::IoOptions::submits_singly),
      acting(key("aio.overlap_events", flag(true), "io_uring: hand over requests while others end"),
             only_with_io("io_uring"),
             &offload::IoOptions::refills),
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
