#pragma once

#include <optional>

namespace zeroth::zero {

// What a ZeRO stage means, decided here and nowhere else (Rajbhandari et al., "ZeRO", 2020). Each
// stage adds one kind of state to what is kept in shards.
struct StagePolicy {
  bool shard_optimizer = false;  // master weights and moments: stage 1 and above
  // Gradients are summed over ranks at every micro-step, each rank keeping its shard of the sums:
  // stage 2 and above. Else they are summed locally, and over ranks once a window.
  bool reduce_every_micro_step = false;
  bool shard_parameters = false;  // weights, gathered for each use: stage 3
};

// `reduce_every_micro_step`: in place of what the stage does. Without it, whole gradients wait for
// the window's end even at stages 2 and 3; with it all stages agree in every bit. kConfig for a
// stage outside 0..3.
[[nodiscard]] StagePolicy policy_for(int stage, std::optional<bool> reduce_every_micro_step = {});

}  // namespace zeroth::zero
