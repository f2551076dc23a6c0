#include "plan/activations.h"

#include <algorithm>

namespace zeroth::plan {
namespace {

Work work_of(const PlanInput& input, std::int64_t rows) {
  return {.rows = rows,
          .tokens = input.row_tokens,
          .targets = input.targets_per_row(),
          .bytes = input.compute_bytes,
          .fast = input.fast_kernels};
}

// What the blocks save, and the most that one of them works with.
struct Blocks {
  Bytes saved;
  Bytes working;
};

Blocks blocks_of(const PlanInput& input, const ModelSize& size, const Work& work) {
  Blocks blocks;
  bool below_trains = size.units.front().trainable > 0;  // the embedding
  for (std::size_t i = 1; i + 1 < size.units.size(); ++i) {
    const UnitSize& unit = size.units[i];
    const BlockTraining training{.weights = unit.trains_whole(),
                                 .input_needs = below_trains,
                                 .dropout = input.lora && input.lora->dropout > 0,
                                 .size = &unit};
    const UnitMemory memory = block_memory(input.model, training, work);
    const Bytes output = Bytes(work.bytes) * input.model.hidden_size * work.all_tokens();
    // Recomputed, a block keeps its output alone, and saves the rest when its backward comes.
    const Bytes again = input.gradient_checkpointing ? memory.saved - output : Bytes();
    blocks.saved += memory.saved - again;
    blocks.working = std::max(blocks.working, again + memory.working);
    below_trains = below_trains || unit.trainable > 0;
  }
  return blocks;
}

// Angles in fp32 and the first key of each position, which all rows and blocks share.
Bytes positions_of(const formats::ModelConfig& model, const Work& work) {
  const auto kinds = std::max<std::int64_t>(1, std::ssize(model.layer_kinds));
  return Bytes(4) * (model.head_dim + 1) * work.tokens * kinds;
}

// `saved` is there all the time, the two workings never together.
Peak peak_of(Bytes saved, Bytes block_working, const HeadMemory& head) {
  const Bytes working = std::max(block_working, head.working);
  return {.activations = saved + (working - head.logits), .logits = head.logits};
}

}  // namespace

Peak training_peak(const PlanInput& input, const ModelSize& size) {
  const Work work = work_of(input, input.micro_batch_rows);
  const Blocks blocks = blocks_of(input, size, work);
  const Bytes embedded = Bytes(work.bytes) * input.model.hidden_size * work.all_tokens();
  return peak_of(embedded + positions_of(input.model, work) + blocks.saved,
                 blocks.working,
                 head_memory(input.model, size.units.back(), work));
}

Peak evaluation_peak(const PlanInput& input) {
  const Work work = work_of(input, input.eval_rows);
  const formats::ModelConfig& model = input.model;
  const auto numbers = [&](std::int64_t count) { return Bytes(work.bytes) * count; };
  const std::int64_t hidden = model.hidden_size;
  const std::int64_t projected =
      (model.num_attention_heads + 2 * model.num_key_value_heads) * model.head_dim;
  const std::int64_t scores = work.fast ? 0 : model.num_attention_heads * work.tokens;
  // Besides a unit's input. Attention: scores, their softmax and its rounded copy, beside sum and
  // norm and two layouts of q, k and v. MLP: its four values, or three and its result, beside sum
  // and norm.
  const Bytes attention =
      Bytes(work.is_narrow() ? 10 : 8) * scores + numbers(2 * hidden + 2 * projected);
  const Bytes mlp = work.fast ? numbers(4 * hidden + 3 * model.intermediate_size)
                              : numbers(2 * hidden + 4 * model.intermediate_size);
  return peak_of(numbers(hidden) * work.all_tokens() + positions_of(model, work),
                 std::max(attention, mlp) * work.all_tokens(),
                 evaluated_head(model, work));
}

}  // namespace zeroth::plan
