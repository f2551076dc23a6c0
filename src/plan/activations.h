#pragma once

#include <cstdint>

#include "plan/bytes.h"
#include "plan/units.h"

// What a forward and backward hold for as long as they last. The engine walks the units forward,
// then backward, so the most is held while the head or the last block works: everything that the
// blocks have saved, and what that one unit works with.
namespace zeroth::plan {

// The rows of one micro-batch, the number type of one block's work, and how it is computed.
struct Work {
  std::int64_t rows = 0;
  std::int64_t tokens = 0;   // of a row
  std::int64_t targets = 0;  // of a row
  std::int64_t bytes = 4;    // of one activation
  bool fast = true;          // kernels that keep neither scores nor all logits

  // Sums and softmax are in fp32; 16-bit operands get a copy in it.
  [[nodiscard]] bool is_narrow() const noexcept { return bytes < 4; }

  [[nodiscard]] std::int64_t all_tokens() const noexcept { return rows * tokens; }
};

// One unit's share.
struct UnitMemory {
  Bytes saved;    // between its forward and its backward
  Bytes working;  // besides, at the most, while it works; the gradients that it gives included
};

// How a block trains. Frozen linears without an adapter save nothing.
struct BlockTraining {
  bool weights = false;      // all of them train
  bool input_needs = false;  // something below trains, so a gradient goes through
  bool dropout = false;      // of the adapters' inputs
  const UnitSize* size = nullptr;
};

[[nodiscard]] UnitMemory block_memory(const formats::ModelConfig& model,
                                      const BlockTraining& training,
                                      const Work& work);

struct HeadMemory {
  Bytes logits;   // logits and what the loss makes of them
  Bytes working;  // at the most, `logits` included
};

// An adapter makes it compute all logits.
[[nodiscard]] HeadMemory head_memory(const formats::ModelConfig& model,
                                     const UnitSize& unit,
                                     const Work& work);

// For a loss without gradients.
[[nodiscard]] HeadMemory evaluated_head(const formats::ModelConfig& model, const Work& work);

// The most of a micro-step. The parts add up to what is held at that one moment: a block's work and
// the head's never live at once, so `activations` has of the block's work only what exceeds
// `logits`.
struct Peak {
  Bytes activations;
  Bytes logits;

  [[nodiscard]] Bytes total() const { return activations + logits; }
};

[[nodiscard]] Peak training_peak(const PlanInput& input, const ModelSize& size);

// A forward of `eval_rows` rows that saves nothing.
[[nodiscard]] Peak evaluation_peak(const PlanInput& input);

}  // namespace zeroth::plan
