#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "comm/communicator.h"
#include "offload/choose_io.h"
#include "zero/array.h"
#include "zero/stage_policy.h"

#include <c10/core/ScalarType.h>

namespace zeroth::zero {

// Where state rests between its uses, and how it moves from and to files. Changes no bit.
struct Resting {
  // Master weights and moments, and gradients where the stage reduces every micro-step.
  Place optimizer = Place::kMemory;
  Place parameters = Place::kMemory;  // stage 3
  std::filesystem::path optimizer_folder;
  std::filesystem::path parameter_folder;

  double optimizer_share = 1;        // of the units' elements; the first units keep the rest
  std::int64_t parameters_kept = 0;  // elements of a rank's shards that stay in memory
  bool reads_ahead = true;           // the next piece of state while one is updated
  bool writes_behind = true;         // the last piece of state while one is updated
  std::optional<std::int64_t> parameter_buffers;  // units on their way at one time; not given:
                                                  // as many as are gathered ahead
  offload::IoOptions io;
  std::optional<offload::IoKind> io_kind;  // not given: the faster one
};

// How units keep and move their state. All but the two number types change no bit.
struct Tuning {
  std::int64_t reduce_bucket_elements = 500'000'000;     // of one reduction
  std::int64_t allgather_bucket_elements = 500'000'000;  // of one gather of updated weights
  bool overlap = true;  // wait for what was started as late as its result allows
  bool scatter = true;  // false: every rank gets every sum, as an all-reduce gives them
  std::int64_t sub_group_elements = 1'000'000'000;  // of one piece of the optimizer's work

  // Stage 3. Elements gathered ahead of their use; not given: the next unit.
  std::optional<std::int64_t> prefetch_elements;
  std::int64_t max_live_elements = 1'000'000'000;  // gathered at one time, as far as use allows
  std::int64_t persistence_elements = 0;           // units up to this size stay gathered

  comm::NumberType communication = comm::NumberType::kFloat32;  // of gradients between ranks
  comm::NumberType grad_accum = comm::NumberType::kFloat32;     // of gradients over micro-steps

  Resting resting;
};

struct ZeroOptions : Tuning {
  StagePolicy policy;
  at::ScalarType dtype = at::kFloat;  // in which units compute
  int num_moments = 2;                // per trainable element, as the optimizer says
  // Of units whose optimizer state rests on file.
  Place gradients = Place::kMemory;
};

}  // namespace zeroth::zero
