#include "config/keys/forms.h"

// What stands in an Accelerate YAML alone. Fields that are settings of other names are paths of
// those keys; blocks of other engines are in accelerate_blocks.cpp and megatron.cpp.
namespace zeroth::config {
namespace {

constexpr auto kFilesSection = "Configuration files";
constexpr auto kFullShard =
    "write distributed_type: DEEPSPEED and deepspeed_config: {zero_stage: 3}, which shards the "
    "same";
constexpr auto kNoTpu = "there is no TPU here: write distributed_type: MULTI_CPU and num_processes";
constexpr auto kNoSuchDevice =
    "there is no such device here: write distributed_type: MULTI_CPU and num_processes";

Declaration here(Declaration key) {
  key.accelerate = {key.name};
  return key;
}

// A field of deepspeed_config, with the short name that `accelerate launch` has for it. Most others
// are paths of DeepSpeed's keys.
Declaration in_deepspeed_config(const std::string& field, Declaration key) {
  key.aliases.push_back(field);
  key.accelerate = {"deepspeed_config." + field};
  return key;
}

std::vector<Part> precision_parts(const Json& value) {
  return {{"bf16", value == "bf16"}, {"fp16", value == "fp16"}};
}

Declarations file_keys() {
  Declaration deepspeed{.name = "deepspeed",
                        .aliases = {"deepspeed_config_file"},
                        .accelerate = {"deepspeed_config.deepspeed_config_file"},
                        .commands = kRunFamily,
                        .help = "a ds_config.json, its text, or none",
                        .off_values = {"none"}};
  deepspeed.mistaken_names = {"deepspeed_config"};  // DeepSpeed's own flag
  Declaration accelerate{.name = "accelerate_config",
                         .aliases = {"config_file"},
                         .commands = kRunFamily,
                         .help = "an Accelerate YAML, or none",
                         .off_values = {"none"}};
  Declaration precision{
      .name = "mixed_precision",
      .aliases = {"dtype"},
      .accelerate = {"mixed_precision"},
      .type = ValueType::kChoice,
      .choices = {"no", "fp16", "bf16"},
      .synonyms = {{"false", "no"},
                   {"none", "no"},
                   {"fp32", "no"},
                   {"float32", "no"},
                   {"float16", "fp16"},
                   {"bfloat16", "bf16"}},
      .refused_choices = {{"fp8", "no product is computed in 8 bits; write bf16"}},
      .default_value = "no",
      .commands = kRunFamily,
      .help = "bf16 and fp16 in one word, as Accelerate says it",
      .parts = precision_parts};
  return in_section(kFilesSection,
                    {std::move(deepspeed), std::move(accelerate), std::move(precision)});
}

Declarations deepspeed_block_keys() {
  return {
      in_deepspeed_config(
          "zero3_init_flag",
          harmless("deepspeed_config.zero3_init_flag",
                   flag(nullptr),
                   "create the model in shards",
                   "how weights are brought in changes no number, and each rank reads for itself")),
      in_deepspeed_config("deepspeed_moe_layer_cls_names",
                          refused("deepspeed_config.deepspeed_moe_layer_cls_names",
                                  text(),
                                  "classes of expert layers",
                                  "models with experts are not supported: leave it out")),
  };
}

// Why a kind of distribution changes nothing: zero_stage and ranks say it already.
std::optional<std::string> why_distribution_is_fine(const Values& values) {
  const Json& type = values["distributed_type"];
  if (type == "NO") {
    return "num_processes says how many ranks there are";
  }
  if (type == "DEEPSPEED") {
    return "ZeRO is built in: zero_stage says how much is sharded";
  }
  if (type == "MULTI_CPU") {
    return "ranks are processes on CPUs, num_processes says how many";
  }
  if (type == "MULTI_GPU") {
    return "ranks are counted by num_processes, whatever they compute on";
  }
  return std::nullopt;
}

Declaration distributed_type() {
  Declaration key = here(refused("distributed_type",
                                 one_of({"NO", "MULTI_CPU", "MULTI_GPU", "DEEPSPEED"}, "NO"),
                                 "which engine Accelerate would use",
                                 "the engine is Zeroth's own"));
  key.synonyms = {{"false", "NO"}};
  key.refused_choices = {
      {"fsdp", kFullShard},
      {"megatron_lm", kFullShard},
      {"tpu", kNoTpu},
      {"xla", kNoTpu},
      {"tp", kFullShard},
      {"multi_npu", kNoSuchDevice},
      {"multi_mlu", kNoSuchDevice},
      {"multi_sdaa", kNoSuchDevice},
      {"multi_musa", kNoSuchDevice},
      {"multi_xpu", kNoSuchDevice},
      {"multi_hpu", kNoSuchDevice},
      {"multi_neuron", kNoSuchDevice},
      {"data_parallel", "a job of Amazon's: write distributed_type: MULTI_CPU"},
      {"model_parallel", "a job of Amazon's: write distributed_type: DEEPSPEED with zero_stage: 3"},
  };
  key.without_effect = why_distribution_is_fine;
  return key;
}

Declaration compute_environment() {
  Declaration key = here(refused("compute_environment",
                                 one_of({"LOCAL_MACHINE"}, "LOCAL_MACHINE"),
                                 "where Accelerate would run",
                                 "runs are started on this machine: write LOCAL_MACHINE"));
  key.refused_choices = {
      {"amazon_sagemaker",
       "jobs are not sent to Amazon: start zeroth on the machine itself, and "
       "write LOCAL_MACHINE"},
      {"customized_cluster", "start zeroth with the cluster's mpirun, and write LOCAL_MACHINE"}};
  return key;
}

Declarations launch_keys() {
  return {
      distributed_type(),
      compute_environment(),
      here(harmless("gpu_ids",
                    names(Json::array({"all"})),
                    "GPUs to compute on",
                    "this build computes on the CPU, num_processes counts the ranks")),
      here(harmless("main_training_function",
                    text("main"),
                    "the script's function to call",
                    "no script is called")),
      here(harmless("enable_cpu_affinity",
                    flag(false),
                    "keep each rank on its own cores",
                    "where threads run changes no number")),
      spelled({{"false", "no"}, {"true", "yes"}},
              here(harmless("downcast_bf16",
                            one_of({"no", "yes"}, "no"),
                            "what a TPU does with double precision",
                            "nothing is computed in double precision on a TPU"))),
  };
}

Declarations tpu_keys() {
  return {
      here(harmless("tpu_name", text(), "the TPU's name", "no TPU is called by its name")),
      here(harmless("tpu_zone", text(), "the TPU's zone", "no TPU is looked for in a zone")),
      here(refused("tpu_use_cluster",
                   flag(false),
                   "start on a cluster of TPUs",
                   "there is no TPU here: write false")),
      here(harmless("tpu_use_sudo",
                    flag(false),
                    "become root on the TPU's hosts",
                    "no TPU's host is logged in to")),
      here(harmless("tpu_vm", names(), "the TPU's hosts", "no TPU's host is started")),
      here(harmless("tpu_env",
                    names(),
                    "variables for the TPU's hosts",
                    "no variable is set on a TPU's host")),
      here(harmless("command_file",
                    text(),
                    "commands to run on the TPU's hosts first",
                    "accelerate tpu-config reads this file, training does not")),
      here(harmless("commands",
                    names(),
                    "commands to run on the TPU's hosts first",
                    "accelerate tpu-config runs these, training does not")),
  };
}

Declarations amazon_keys() {
  const auto unused = [](const std::string& name, const std::string& help, const std::string& why) {
    return here(harmless(name, text(), help, "no job is sent to Amazon, so " + why));
  };
  return {
      unused("ec2_instance_type", "Amazon's kind of machine", "no machine is rented"),
      unused("iam_role_name", "Amazon's role", "nobody has to have a role"),
      unused("image_uri", "Amazon's container", "no container is started"),
      unused("profile", "Amazon's profile", "no profile is signed in with"),
      unused("region", "Amazon's region", "no region is chosen"),
      unused("base_job_name", "the job's name at Amazon", "no job needs a name"),
      unused("pytorch_version", "PyTorch's release at Amazon", "no PyTorch is asked for"),
      unused("transformers_version", "Transformers' release at Amazon", "no Transformers runs"),
      unused("py_version", "Python's release at Amazon", "no Python runs"),
      unused("sagemaker_inputs_file", "where the job's inputs are", "dataset names the rows"),
      unused("sagemaker_metrics_file", "which of the job's metrics to show", "none is shown there"),
      here(harmless("additional_args",
                    block(),
                    "further settings of the job",
                    "no job is sent to Amazon, so it has no further settings")),
  };
}

}  // namespace

Declarations accelerate_keys() {
  return joined({file_keys(),
                 in_section("Accelerate: deepspeed_config", deepspeed_block_keys()),
                 in_section("Accelerate: launch", launch_keys()),
                 in_section("Accelerate: TPU", tpu_keys()),
                 in_section("Accelerate: SageMaker", amazon_keys()),
                 accelerate_block_keys()});
}

}  // namespace zeroth::config
