#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arithmetic/loss_scale.h"
#include "arithmetic/schedule.h"
#include "base/json.h"
#include "offload/io_options.h"

// What is in force for one run: plain values, each resolved from the sources (config/resolve.h).
// Passed down; nothing below `config`, `cli` and `worker` knows a setting's name.
namespace zeroth::config {

enum class Command {
  kTrain,
  kEval,
  kPredict,
  kCheck,
  kPlan,
  kExplain,
  kEnv,
  kInspect,
  kInitModel,
  kTokenize,
  kTrainTokenizer,
  kLaunch,
  kExport,
  kBench,
};
enum class FinetuningType { kFull, kLora, kFreeze };
enum class BiasTraining { kNone, kAll, kLoraOnly };
enum class LoraStart { kDefault, kGaussian };
enum class TrainStage { kPretrain, kSupervised };
enum class Precision { kFp32, kBf16, kFp16 };
enum class NumberType { kFp32, kBf16, kFp16 };
// kAdam adds the weight decay to the gradient.
enum class OptimizerKind { kAdamW, kAdam, kSgd, kLion, kAdagrad, kLamb };
using arithmetic::ScheduleKind;
enum class Cadence { kNo, kSteps, kEpoch };
enum class KernelChoice { kAuto, kReference };
// What frozen weights are packed for; kAuto: as much as memory has room for.
enum class PackWeights { kAuto, kForward, kOff };

struct ModelSettings {
  std::string model_name_or_path;
  std::string model_config;             // init-model: a config.json
  std::string cache_dir;                // Hugging Face's cache; empty: where its tools put it
  std::string model_revision = "main";  // of a model that is found there
  std::string adapter_name_or_path;     // folders with commas between them; empty: none
  std::vector<std::string> add_tokens;  // tokens that the tokenizer gets beside its own
  std::vector<std::string> add_special_tokens;
  bool resize_vocab = false;  // rows of the embedding for all tokens that there are
  bool share_frozen = true;   // one copy of frozen weights for all ranks of a host
  Precision precision = Precision::kFp32;
  arithmetic::LossScaleOptions loss_scale;  // fp16
  bool check_grad_overflow = true;          // bf16; false: such an update is applied all the same

  [[nodiscard]] std::vector<std::string> adapter_folders() const;

  bool operator==(const ModelSettings&) const = default;
};

struct FinetuneSettings {
  FinetuningType type = FinetuningType::kLora;
  std::int64_t lora_rank = 8;
  double lora_alpha = 16;  // 2 * rank unless given
  double lora_dropout = 0;
  std::vector<std::string> lora_targets{"all"};
  std::vector<std::string> exclude_modules;
  std::vector<std::string> layers_to_transform;  // numbers; empty: all
  std::vector<std::string> layers_pattern;
  Json rank_pattern = Json::object();  // module -> rank
  Json alpha_pattern = Json::object();
  bool use_rslora = false;
  bool use_dora = false;
  std::vector<std::string> modules_to_save;  // trained in full beside the adapter
  BiasTraining bias = BiasTraining::kNone;
  LoraStart init_lora_weights = LoraStart::kDefault;
  std::optional<double> loraplus_lr_ratio;   // rate of B over that of A
  double loraplus_lr_embedding = 1e-6;       // a rate, where loraplus_lr_ratio is given
  bool create_new_adapter = false;           // the given ones are merged into the base
  std::int64_t freeze_trainable_layers = 2;  // the last ones; the first if negative
  std::vector<std::string> freeze_trainable_modules{"all"};
  std::vector<std::string> freeze_extra_modules;  // outside the blocks
  bool gradient_checkpointing = false;            // recompute a unit's activations in its backward

  bool operator==(const FinetuneSettings&) const = default;
};

struct DataSettings {
  TrainStage stage = TrainStage::kSupervised;
  std::vector<std::string> dataset;  // files, resolved against dataset_dir
  std::vector<std::string> eval_dataset;
  double val_size = 0;
  std::string prompt_template;  // empty: not given
  std::int64_t cutoff_len = 0;  // 0: by default, which needs the model's config: longest_row()
  std::int64_t max_samples = -1;
  std::vector<std::string> dataset_columns;  // name=column; empty: as the rows themselves say
  std::string default_system;                // of rows without one
  bool train_on_prompt = false;
  bool mask_history = false;
  bool skip_bad_rows = false;
  bool packing = true;        // stage pt: documents end to end
  bool neat_packing = false;  // stage sft: rows that do not see each other
  bool shuffle = true;

  // Where rows are cut, in tokens.
  [[nodiscard]] std::int64_t longest_row(std::int64_t max_position_embeddings) const noexcept {
    constexpr std::int64_t kDefault = 2048;
    return cutoff_len > 0                       ? cutoff_len
           : max_position_embeddings < kDefault ? max_position_embeddings
                                                : kDefault;
  }

  bool operator==(const DataSettings&) const = default;
};

struct BatchSettings {
  std::int64_t micro_batch_rows = 8;  // rows per rank and forward
  std::int64_t accumulation = 1;
  std::int64_t eval_rows = 8;
  std::int64_t world_size = 1;

  [[nodiscard]] std::int64_t global_rows() const noexcept {
    return micro_batch_rows * accumulation * world_size;
  }

  bool operator==(const BatchSettings&) const = default;
};

enum class LaunchKind { kLocal, kHost, kMpi };

// How the ranks of this run find each other, and which of them this process is.
struct LaunchSettings {
  LaunchKind kind = LaunchKind::kLocal;
  std::int64_t rank = 0;
  std::string run_name;          // of the ranks of one host; unique among live runs
  double start_timeout_s = 120;  // a rank that has not joined by then is named

  bool operator==(const LaunchSettings&) const = default;
};

struct ZeroSettings {
  std::int64_t stage = 0;
  std::int64_t reduce_bucket_elements = 500'000'000;
  std::int64_t allgather_bucket_elements = 500'000'000;  // even; stages 1 and 2
  bool overlap_comm = true;
  bool reduce_scatter = true;                     // stages 1 and 2; false: all ranks make all sums
  std::optional<std::int64_t> prefetch_elements;  // stage 3; not set: the next unit, 0: nothing
  // Stage 3: units of at most so many trainable elements stay gathered between updates.
  std::int64_t persistence_elements = 0;
  std::int64_t max_live_elements = 1'000'000'000;  // stage 3: gathered at one time
  std::int64_t sub_group_elements =
      1'000'000'000;  // of one piece of the optimizer's work; 0: a unit's
  // Stage 3, 16-bit full training: false writes the result in fp32 from the master weights.
  std::optional<bool> gather_16bit_on_save;
  bool ignore_unused_parameters = true;
  NumberType communication = NumberType::kFp32;  // in which gradients travel between ranks
  NumberType grad_accum = NumberType::kFp32;     // in which micro-steps are added up
  // Not set: stages 2 and 3 do, 0 and 1 reduce once an update.
  std::optional<bool> reduce_every_micro_step;

  bool operator==(const ZeroSettings&) const = default;
};

// Where state rests between its uses, in DeepSpeed's words. On a processor cpu is where it is.
enum class OffloadDevice { kNone, kCpu, kNvme };
enum class OffloadIo { kAuto, kUring, kThreads };

struct OffloadSettings {
  OffloadDevice optimizer = OffloadDevice::kNone;  // master weights, moments, shards of gradients
  OffloadDevice parameters = OffloadDevice::kNone;
  std::string optimizer_path;  // folders, for nvme
  std::string parameter_path;
  double optimizer_ratio = 1;             // share of the elements whose state is offloaded
  std::int64_t parameters_in_memory = 0;  // elements of a rank's shards that are not offloaded
  std::optional<std::int64_t> parameter_buffers;
  bool reads_ahead = true;
  bool writes_behind = true;
  OffloadIo io = OffloadIo::kAuto;
  offload::IoOptions transfers;

  [[nodiscard]] bool uses_files() const noexcept {
    return optimizer == OffloadDevice::kNvme || parameters == OffloadDevice::kNvme;
  }

  bool operator==(const OffloadSettings&) const = default;
};

struct OptimizerSettings {
  OptimizerKind kind = OptimizerKind::kAdamW;
  double learning_rate = 5e-5;
  double weight_decay = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double momentum = 0;          // SGD
  double dampening = 0;         // SGD
  bool nesterov = false;        // SGD
  bool bias_correction = true;  // AdamW, Adam, LAMB
  double lr_decay = 0;          // Adagrad
  double min_coeff = 0.01;      // LAMB: bounds of the factor of a parameter
  double max_coeff = 10;
  double max_grad_norm = 1;       // 0: no clipping
  std::int64_t max_skipped = 20;  // so many skipped attempts in a row end the run

  bool operator==(const OptimizerSettings&) const = default;
};

struct ScheduleSettings {
  ScheduleKind kind = ScheduleKind::kLinear;
  double warmup_ratio = 0;
  std::int64_t warmup_steps = 0;  // beats the ratio when > 0
  double num_train_epochs = 3;
  std::int64_t max_steps = -1;                  // > 0 beats the epochs
  std::optional<double> warmup_max_lr;          // DeepSpeed's name for the peak, where it decides
  std::optional<std::int64_t> total_num_steps;  // the schedule's own length; else the run's
  arithmetic::CurveParameters curve;
  arithmetic::WarmupParameters warmup;
  arithmetic::OneCycleParameters one_cycle;
  arithmetic::RangeTestParameters range_test;

  bool operator==(const ScheduleSettings&) const = default;
};

struct OutputSettings {
  std::string output_dir;
  // Whoever writes the results calls remove_results() (base/output_folder.h) once its inputs are
  // read and good.
  bool overwrite_output_dir = false;
  std::int64_t logging_steps = 10;  // progress lines; metrics.jsonl has every update
  bool log_micro_steps = false;
  Cadence eval_cadence = Cadence::kNo;
  std::int64_t eval_steps = 0;  // 0: logging_steps

  bool operator==(const OutputSettings&) const = default;
};

enum class SaveCadence { kNo, kSteps, kEpoch, kBest };

enum class StoredType { kAsStored, kFp32, kBf16, kFp16 };

// What `zeroth export` writes.
struct ExportSettings {
  bool merge = true;
  StoredType dtype = StoredType::kAsStored;
  double file_gigabytes = 5;  // of weights, in one file at the most

  bool operator==(const ExportSettings&) const = default;
};

struct SavingSettings {
  SaveCadence cadence = SaveCadence::kSteps;
  double steps = 500;            // updates; below 1 a share of all
  std::int64_t total_limit = 0;  // checkpoints that stay; 0: all
  bool only_model = false;
  bool load_best_at_end = false;

  bool operator==(const SavingSettings&) const = default;
};

struct ResumeSettings {
  std::string from;                  // a checkpoint's folder, "latest" or "auto"; empty: a new run
  std::vector<std::string> allowed;  // keys that may differ from the checkpoint's all the same
  std::string folder;                // the checkpoint that was found; empty: none

  bool operator==(const ResumeSettings&) const = default;
};

struct GenerationSettings {
  bool do_sample = false;  // greedy unless asked
  double temperature = 0.95;
  double top_p = 0.7;
  std::int64_t top_k = 50;
  double repetition_penalty = 1.0;
  std::int64_t max_new_tokens = 0;  // 0: not given
  std::int64_t max_length = 0;      // 0: not given
  bool skip_special_tokens = true;

  bool operator==(const GenerationSettings&) const = default;
};

// `plan`: the machine it speaks of, and what it writes. Sizes are as written: "80GiB".
struct PlanSettings {
  std::string device_memory;        // empty: the ranks share this machine's memory
  std::string host_memory;          // empty: not bounded
  std::int64_t ranks_per_node = 0;  // 0: min(ranks, 8)
  std::string write;                // a ds_config.json to write; empty: none
  bool overwrite = false;

  bool operator==(const PlanSettings&) const = default;
};

// A value of a weaker source.
struct WeakerValue {
  Json value;
  std::string source;

  bool operator==(const WeakerValue&) const = default;
};

// One line of the start table and of effective_config.json.
struct SettingInForce {
  std::string key;
  Json value;
  std::string source;                  // "command line", "default", "ds_config.json:14", ...
  std::vector<WeakerValue> overrides;  // what gave way to it
  std::vector<std::string> agreeing;   // further sources that say the same
  std::string auto_in;                 // where "auto" left it open; empty: nowhere
  bool given = false;                  // by the user, in whichever source
  bool in_table = false;               // given, not the default, or always shown
  std::string spelled{};               // the name it was given by; empty: not given

  bool operator==(const SettingInForce&) const = default;
};

// A value that was given and changes nothing in this run, or is for a part that is not built yet.
struct IdleSetting {
  std::string key;
  Json value;
  std::string source;
  std::string why;
  std::string as_written{};  // "mixed_precision fp16", where that says fp16 true

  bool operator==(const IdleSetting&) const = default;
};

// How the ranks of a run are divided.
struct GridInForce {
  std::int64_t world_size = 1;
  std::int64_t dp = 1;
  std::int64_t pp = 1;
  std::int64_t tp = 1;
  std::int64_t sp = 1;
  std::string source;  // of world_size

  bool operator==(const GridInForce&) const = default;
};

struct BenchSettings {
  std::int64_t updates = 10;  // that are measured
  std::int64_t warmup = 3;    // before these

  bool operator==(const BenchSettings&) const = default;
};

struct RunConfig {
  Command command = Command::kTrain;
  ModelSettings model;
  FinetuneSettings finetune;
  DataSettings data;
  BatchSettings batch;
  LaunchSettings launch;
  ZeroSettings zero;
  OffloadSettings offload;
  OptimizerSettings optimizer;
  ScheduleSettings schedule;
  OutputSettings output;
  SavingSettings saving;
  ExportSettings exporting;
  ResumeSettings resume;
  GenerationSettings generation;
  PlanSettings plan;
  BenchSettings bench;
  KernelChoice kernels = KernelChoice::kAuto;
  PackWeights pack_weights = PackWeights::kAuto;
  std::uint64_t seed = 42;
  std::int64_t threads = 0;  // 0: all cores
  bool json_output = false;  // --format json

  // tokenize, train-tokenizer
  bool decode = false;
  bool messages = false;
  bool no_special_tokens = false;
  std::int64_t vocab_size = 0;

  std::vector<SettingInForce> settings;     // every declared key that has an effect in this run
  std::vector<IdleSetting> without_effect;  // the values that were given and have none
  std::vector<IdleSetting> planned;         // `check` alone: a run with one is refused
  std::vector<std::string> notices;         // what a user should know, one line each
  GridInForce grid;

  // Whether the user gave the key a value, in whichever source.
  // What is in force for a key, as it was given; nullptr where it is not.
  [[nodiscard]] const SettingInForce* find(std::string_view key) const;
  [[nodiscard]] Json value_of(std::string_view key) const;  // null where it is not
  // The model by the name that people gave it, where its folder was found by an id.
  [[nodiscard]] std::string model_as_given() const;
  [[nodiscard]] bool is_given(std::string_view key) const;

  // Rows of one update over all ranks. Ranks that share their rows count once.
  [[nodiscard]] std::int64_t global_rows() const noexcept {
    return batch.micro_batch_rows * batch.accumulation * grid.dp;
  }

  bool operator==(const RunConfig&) const = default;
};

// RunConfig as the front hands it to a worker, and back. from_json(to_json(c)) == c in every field.
[[nodiscard]] Json to_json(const RunConfig& config);
[[nodiscard]] RunConfig from_json(const Json& json);

}  // namespace zeroth::config
