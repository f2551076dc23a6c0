#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "config/schema.h"

// The declarations, one group of related keys per file. schema() joins them.
namespace zeroth::config {

using Declarations = std::vector<Declaration>;

[[nodiscard]] Declarations model_keys();
[[nodiscard]] Declarations vocabulary_keys();  // tokens to add
[[nodiscard]] Declarations finetune_keys();    // a part of them: what is trained
[[nodiscard]] Declarations data_keys();
[[nodiscard]] Declarations training_keys();
[[nodiscard]] Declarations zero_keys();       // a part of them: what ZeRO does
[[nodiscard]] Declarations optimizer_keys();  // another
[[nodiscard]] Declarations schedule_keys();
[[nodiscard]] Declarations output_keys();
[[nodiscard]] Declarations saving_keys();  // checkpoints, and going on from one
[[nodiscard]] Declarations generation_keys();
[[nodiscard]] Declarations export_keys();
[[nodiscard]] Declarations bench_keys();  // bench, and which kernels compute
[[nodiscard]] Declarations text_tool_keys();  // tokenize, train-tokenizer
// Transformers' and LLaMA-Factory's further options.
[[nodiscard]] Declarations transformers_run_keys();
[[nodiscard]] Declarations transformers_compute_keys();
[[nodiscard]] Declarations llama_factory_model_keys();
[[nodiscard]] Declarations llama_factory_data_keys();
[[nodiscard]] Declarations llama_factory_tuning_keys();
[[nodiscard]] Declarations llama_factory_method_keys();
[[nodiscard]] Declarations launcher_keys();  // torchrun's, deepspeed's, accelerate launch's
[[nodiscard]] Declarations megatron_keys();
[[nodiscard]] Declarations deepspeed_keys();         // what stands in a ds_config.json alone
[[nodiscard]] Declarations check_keys();             // --strict, --expect and their like
[[nodiscard]] Declarations plan_keys();              // the machine that `plan` speaks of
[[nodiscard]] Declarations accelerate_keys();        // what stands in an Accelerate YAML alone
[[nodiscard]] Declarations accelerate_block_keys();  // a part of them

// In a file: somebody else fills it.
inline constexpr auto kAuto = "auto";

inline constexpr Range kPositive{.min = 0, .min_excluded = true};
inline constexpr Range kNotNegative{.min = 0};
inline constexpr Range kAtLeastOne{.min = 1};
// Products of two such counts, and sums over all updates, stay far from the end of 64 bits.
inline constexpr Range kRowCount{.min = 1, .max = 1e9};
inline constexpr Range kShare{.min = 0, .max = 1};

// A condition of a key: what only ranks between them can do.
[[nodiscard]] inline std::optional<std::string> only_with_ranks(const Values& values) {
  if (values["ranks"].get<std::int64_t>() == 1) {
    return "one rank has nobody to share with";
  }
  return std::nullopt;
}

}  // namespace zeroth::config
