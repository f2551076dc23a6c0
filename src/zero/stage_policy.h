#pragma once

namespace zeroth::zero {

// What a ZeRO stage means, decided here and nowhere else (Rajbhandari et al., "ZeRO", 2020). Each
// stage adds one kind of state to what is kept in shards.
struct StagePolicy {
  bool shard_optimizer = false;  // master weights and moments: stage 1 and above
  bool shard_gradients =
      false;  // gradients, which are then reduced at every micro-step: stage 2 and above
  bool shard_parameters = false;  // weights, gathered for each use: stage 3
};

// kConfig for a stage outside 0..3.
[[nodiscard]] StagePolicy policy_for(int stage);

}  // namespace zeroth::zero
