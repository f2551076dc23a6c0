#pragma once

#include <cstdint>
#include <optional>

#include "comm/communicator.h"
#include "zero/stage_policy.h"

#include <c10/core/ScalarType.h>

namespace zeroth::zero {

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
};

struct ZeroOptions : Tuning {
  StagePolicy policy;
  at::ScalarType dtype = at::kFloat;  // in which units compute
  int num_moments = 2;                // per trainable element, as the optimizer says
};

}  // namespace zeroth::zero
