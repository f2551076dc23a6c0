#include "config/keys/deepspeed.h"

namespace zeroth::config::deepspeed {
namespace {

constexpr auto kNoNebula = "Nebula is not used";
constexpr auto kNoDataStates = "DataStates is not used";

Declarations layout_keys() {
  return {
      harmless(key("checkpoint.tag_validation",
                   one_of({"ignore", "warn", "fail"}, "warn"),
                   "what to do when ranks name a checkpoint differently"),
               "a checkpoint is named by its update, which every rank counts alike"),
      harmless(key("checkpoint.load_universal",
                   flag(false),
                   "read DeepSpeed's layout for any number of ranks"),
               "no layout depends on the number of ranks, and DeepSpeed's are not read"),
      refused(
          key("checkpoint.use_node_local_storage", flag(false), "each host writes to its own disk"),
          {false},
          "all ranks write into one output_dir; put it where every host sees it"),
      harmless(key("checkpoint.parallel_write.pipeline_stage",
                   flag(false),
                   "pipeline stages write at the same time"),
               "there are no pipeline stages that could write one after another"),
      harmless(key("checkpoint.checkpoint_serialization",
                   flag(true),
                   "write through PyTorch's serialisation"),
               "results are safetensors; DeepSpeed does not use this key either"),
  };
}

Declarations writer_keys() {
  return {
      harmless(key("checkpoint.writer.type",
                   one_of({"fast", "mock", "python"}),
                   "which of DeepSpeed's writers"),
               "there is one writer, of safetensors"),
      planned(key("checkpoint.writer.decoupled", flag(false), "write while training goes on"),
              {false},
              "training waits until a file is written"),
      harmless(key("checkpoint.writer.io_buffer_size",
                   whole(kAtLeastOne, 67108864, "bytes"),
                   "buffer between tensors and the file"),
               "how large a buffer is never shows in a file"),
      harmless(key("checkpoint.writer.io_buffer_double",
                   flag(true),
                   "fill one buffer while the other is written"),
               "how many buffers there are never shows in a file"),
      harmless(key("checkpoint.writer.show_statistics",
                   flag(false),
                   "print how fast files were written"),
               "the finish table shows the files and their sizes"),
      harmless(key("checkpoint.writer.data_parallel",
                   one_of({"replica", "socket", "machine"}),
                   "which ranks share the writing"),
               "each byte of a result is written once, whichever rank holds it"),
      harmless(key("checkpoint.writer.io_multiplier",
                   whole(kAtLeastOne, 1),
                   "writers for each rank that writes"),
               "one writer for each file keeps a local disk busy"),
  };
}

Declarations service_keys() {
  return {
      refused(key("nebula.enabled", flag(false), "write checkpoints through Azure's Nebula"),
              {false},
              "checkpoints are plain files; leave nebula out and write output_dir"),
      detail(key("nebula.persistent_storage_path", text(), "where Nebula keeps them"), kNoNebula),
      detail(key("nebula.persistent_time_interval",
                 whole(kAtLeastOne, 100, "seconds"),
                 "seconds between two that Nebula keeps"),
             kNoNebula),
      detail(key("nebula.num_of_version_in_retention",
                 whole(kAtLeastOne, 2),
                 "how many of them Nebula keeps"),
             kNoNebula),
      detail(key("nebula.enable_nebula_load", flag(true), "read them back through Nebula"),
             kNoNebula),
      detail(key("nebula.load_path", text(), "where Nebula reads them from"), kNoNebula),
      refused(key("datastates_ckpt.enabled", flag(false), "write through DataStates"),
              {false},
              "checkpoints are plain files; leave datastates_ckpt out and write output_dir"),
      detail(key("datastates_ckpt.config", block(), "DataStates' own settings"), kNoDataStates),
  };
}

}  // namespace

Declarations checkpoint_keys() {
  return joined({layout_keys(), writer_keys(), service_keys()});
}

}  // namespace zeroth::config::deepspeed
