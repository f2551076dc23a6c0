#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/run_config.h"
#include "formats/model_config.h"
#include "shapes/freeze.h"
#include "shapes/lora.h"
#include "shard/prefetch.h"

namespace zeroth::plan {

// Where state rests between its uses.
enum class Place { kDevice, kHost, kFiles };

struct Offload {
  Place optimizer = Place::kDevice;   // master weights and moments, and gradients kept in shards
  Place parameters = Place::kDevice;  // at stage 3 alone

  [[nodiscard]] bool uses_files() const noexcept {
    return optimizer == Place::kFiles || parameters == Place::kFiles;
  }

  friend bool operator==(const Offload&, const Offload&) = default;
};

// How state passes between files and memory.
struct Streaming {
  std::int64_t sub_group_elements = 1'000'000'000;  // of one piece; 0: a unit's
  bool reads_ahead = true;
  bool writes_behind = true;
  std::optional<std::int64_t> parameter_buffers;  // units on their way; not given: as prefetch does
  double optimizer_share = 1;                     // of the elements, whose state is in files
  std::int64_t parameters_kept = 0;               // elements of a rank's shards in memory
};

// What frozen factors are kept once more for, as products read them.
enum class PackedFor { kNothing, kForward, kBoth };

// Everything that a plan depends on, and nothing that it does not: no learning rate, no file.
struct PlanInput {
  formats::ModelConfig model;
  std::optional<shapes::LoraSettings> lora;
  std::optional<shapes::FreezeSettings> freeze;  // without lora

  std::string compute_type = "fp32";
  std::int64_t compute_bytes = 4;   // of one weight or activation
  std::int64_t gradient_bytes = 4;  // of one gradient while micro-steps are added up
  std::string optimizer = "adamw_torch";
  std::int64_t num_moments = 2;  // fp32 numbers that the optimizer keeps for each weight

  int stage = 0;
  // Gradients are reduced at every micro-step; nullopt: as the stage does by itself (2 and 3).
  std::optional<bool> reduce_every_micro_step;
  bool overlap = true;                    // reductions go on while backward does
  std::int64_t communication_bytes = 4;   // of one gradient between ranks
  shard::PrefetchLimits prefetch;         // stage 3
  std::int64_t persistence_elements = 0;  // stage 3: units up to this size stay gathered
  Offload offload;
  Streaming streaming;
  bool gradient_checkpointing = false;
  bool fast_kernels = true;   // those that keep neither scores nor all logits
  bool share_frozen = false;  // one copy of frozen weights for all ranks of a host
  bool reads_file_as_stored = false;  // frozen weights compute in their file's type, unmerged
  PackedFor packed = PackedFor::kNothing;
  bool chooses_packed = false;  // `packed` is the most; settle_packing() takes what fits

  std::int64_t ranks = 1;
  std::int64_t ranks_per_node = 1;
  bool own_memory = false;  // each rank's device has memory of its own, apart from the host's

  std::int64_t micro_batch_rows = 1;
  std::int64_t accumulation = 1;
  std::int64_t row_tokens = 1;
  std::int64_t row_targets = 0;  // labels of a row that are predicted; 0: all but the first token
  bool joins_rows = false;       // rows of a batch have begins of their own
  std::int64_t eval_rows = 0;    // rows of one forward while evaluating; 0: the run never does

  [[nodiscard]] bool trains_all() const noexcept { return !lora && !freeze; }

  [[nodiscard]] std::int64_t targets_per_row() const noexcept {
    return row_targets > 0 ? row_targets : row_tokens - 1;
  }

  [[nodiscard]] std::int64_t ranks_on_host() const noexcept {
    return ranks < ranks_per_node ? ranks : ranks_per_node;
  }
};

// What `config` says of a run on a model of this shape. Values that are known but not built yet
// count as well: a plan may be made for them. An adapter that is named is read for its rank and
// targets. kNotSupported where ranks would divide the model among themselves.
[[nodiscard]] PlanInput input_of(const config::RunConfig& config,
                                 const formats::ModelConfig& model);

}  // namespace zeroth::plan
