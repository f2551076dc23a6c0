#include "zero/stage_policy.h"

#include "base/error.h"
#include <fmt/format.h>

namespace zeroth::zero {

StagePolicy policy_for(int stage, std::optional<bool> reduce_every_micro_step) {
  if (stage < 0 || stage > 3) {
    throw Error(ErrorKind::kConfig,
                fmt::format("there is no ZeRO stage {}: choose 0, 1, 2 or 3", stage));
  }
  return {.shard_optimizer = stage >= 1,
          .reduce_every_micro_step = reduce_every_micro_step.value_or(stage >= 2),
          .shard_parameters = stage >= 3};
}

}  // namespace zeroth::zero
