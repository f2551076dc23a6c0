#include "zero/stage_policy.h"

#include "base/error.h"
#include <fmt/format.h>

namespace zeroth::zero {

StagePolicy policy_for(int stage) {
  if (stage < 0 || stage > 3) {
    throw Error(ErrorKind::kConfig,
                fmt::format("there is no ZeRO stage {}: choose 0, 1, 2 or 3", stage));
  }
  return {
      .shard_optimizer = stage >= 1, .shard_gradients = stage >= 2, .shard_parameters = stage >= 3};
}

}  // namespace zeroth::zero
