#include <algorithm>

#include "plan/activations.h"

// Follows models/decoder_units.cpp and the autograd functions in kernels/: what each saves for its
// backward, and what its backward holds at once. Change it with them; activations_test.cpp has
// measured numbers.
namespace zeroth::plan {
namespace {

constexpr std::int64_t kWide = 4;  // fp32

// Bytes of one token in one block, by the names of models/decoder_units.cpp.
class Block {
 public:
  Block(const formats::ModelConfig& model, const BlockTraining& training, const Work& work)
      : training_(training),
        bytes_(work.bytes),
        narrow_(work.is_narrow()),
        hidden_(model.hidden_size),
        query_(model.num_attention_heads * model.head_dim),
        key_(model.num_key_value_heads * model.head_dim),
        inner_(model.intermediate_size),
        scores_(model.num_attention_heads * work.tokens) {}

  [[nodiscard]] Bytes saved() const {
    return norm(first_norm_needs()) +
           inputs_of({BlockLinear::kQuery, BlockLinear::kKey, BlockLinear::kValue},
                     hidden_,
                     first_norm_needs()) +
           attention() + output_input() + second_norm() + mlp() + adapters() + output();
  }

  [[nodiscard]] Bytes output() const { return number(hidden_); }

  // Each moment of the backward: what lives besides `saved`, less what the backward has freed of
  // it.

  // Through down and into gate * up: the gradients of the output, the product and both factors.
  [[nodiscard]] Bytes in_mlp() const {
    return number(hidden_ + 2 * inner_) +
           std::max(Bytes(), number(inner_) - inputs_of({BlockLinear::kDown}, inner_, true));
  }

  // rms_norm widens its operands and multiplies step by step.
  [[nodiscard]] Bytes in_norm() const {
    const std::int64_t wide_copies = narrow_ ? 6 : 5;
    return Bytes(kWide * wide_copies) * hidden_ + number((narrow_ ? 3 : 2) * hidden_) - mlp() -
           second_inputs();
  }

  // Scores and their gradient in fp32, softmax of both; then the gradients of q, k and v.
  [[nodiscard]] Bytes in_attention() const {
    if (!attention_needs()) {
      return Bytes();
    }
    const Bytes softmax = Bytes(narrow_ ? 14 : 8) * scores_ + number(2 * hidden_ + 2 * query_);
    const Bytes products =
        Bytes(narrow_ ? 6 : 8) * scores_ + number(2 * hidden_ + 3 * query_ + 2 * key_);
    return std::max(softmax, products) - mlp() - second_norm() - output_input();
  }

  // All is done: only the gradients with respect to input and output are left of the block.
  [[nodiscard]] Bytes at_the_end() const { return number(2 * hidden_) + output() - saved(); }

 private:
  [[nodiscard]] Bytes number(std::int64_t count) const { return Bytes(bytes_) * count; }

  [[nodiscard]] bool adapted(BlockLinear linear) const {
    return training_.size->adapted[static_cast<std::size_t>(linear)];
  }

  [[nodiscard]] bool trains(BlockLinear linear) const {
    return training_.weights || adapted(linear);
  }

  // Gradients go through a value where anything before it trains.
  [[nodiscard]] bool first_norm_needs() const { return training_.weights || training_.input_needs; }

  [[nodiscard]] bool attention_needs() const {
    return first_norm_needs() || adapted(BlockLinear::kQuery) || adapted(BlockLinear::kKey) ||
           adapted(BlockLinear::kValue);
  }

  [[nodiscard]] bool middle_needs() const {
    return attention_needs() || adapted(BlockLinear::kOutput);
  }

  // The shared input of some linears: kept once, or with dropout once for each adapter, and its
  // factors where a gradient goes through them.
  [[nodiscard]] Bytes inputs_of(std::initializer_list<BlockLinear> linears,
                                std::int64_t width,
                                bool needs) const {
    const auto count =
        std::count_if(linears.begin(), linears.end(), [&](BlockLinear l) { return trains(l); });
    const bool apart = training_.dropout && !training_.weights;
    return number(width) * (apart ? count * (needs ? 2 : 1) : std::min<std::int64_t>(count, 1));
  }

  // rms_norm keeps its input, which belongs to somebody else, and 1 / rms.
  [[nodiscard]] static Bytes norm(bool needs) { return Bytes(needs ? kWide : 0); }

  // q, k and v as the products want them, and the softmax's weights, in the compute type.
  [[nodiscard]] Bytes attention() const {
    return attention_needs() ? number(query_ + 2 * key_ + scores_) : Bytes();
  }

  [[nodiscard]] Bytes output_input() const {
    return inputs_of({BlockLinear::kOutput}, query_, attention_needs());
  }

  [[nodiscard]] Bytes second_inputs() const {
    return inputs_of({BlockLinear::kGate, BlockLinear::kUp}, hidden_, middle_needs());
  }

  // The sum of input and attention, which the norm keeps, and what goes into gate and up.
  [[nodiscard]] Bytes second_norm() const {
    return (middle_needs() ? number(hidden_) : Bytes()) + norm(middle_needs()) + second_inputs();
  }

  // silu keeps gate, the product keeps silu(gate) and up; down keeps the product.
  [[nodiscard]] Bytes mlp() const {
    const bool gate = middle_needs() || adapted(BlockLinear::kGate);
    const bool up = middle_needs() || adapted(BlockLinear::kUp);
    return number(inner_) * ((gate ? 2 : 0) + (up ? 1 : 0)) +
           inputs_of({BlockLinear::kDown}, inner_, gate || up);
  }

  // x A^T of each adapter.
  [[nodiscard]] Bytes adapters() const {
    const auto& adapted = training_.size->adapted;
    return number(training_.lora_rank) * std::count(adapted.begin(), adapted.end(), true);
  }

  const BlockTraining& training_;
  std::int64_t bytes_;
  bool narrow_;
  std::int64_t hidden_, query_, key_, inner_;
  std::int64_t scores_;  // of one query token with all keys, over the heads
};

// Gradients of the weights that the backward has reached; an adapter's are small and counted as all
// there.
Bytes weight_gradients(const BlockTraining& training, std::int64_t reached, std::int64_t bytes) {
  return Bytes(bytes) * (training.weights ? reached : training.size->trainable);
}

}  // namespace

UnitMemory block_memory(const formats::ModelConfig& model,
                        const BlockTraining& training,
                        const Work& work) {
  const Block block(model, training, work);
  const std::int64_t inner = model.hidden_size * model.intermediate_size;
  const std::int64_t query = model.hidden_size * model.num_attention_heads * model.head_dim;
  const auto gradients = [&](std::int64_t reached) {
    return weight_gradients(training, reached, work.bytes);
  };
  // A 16-bit gradient is widened before it is added to the others.
  const Bytes widened = Bytes(work.is_narrow() ? kWide : 0) * training.size->largest_trainable;
  const std::int64_t tokens = work.all_tokens();
  return {.saved = block.saved() * tokens,
          .working = std::max(
              {block.in_mlp() * tokens + gradients(inner),
               block.in_norm() * tokens + gradients(3 * inner),
               block.in_attention() * tokens + gradients(3 * inner + query),
               block.at_the_end() * tokens + gradients(training.size->trainable) + widened})};
}

}  // namespace zeroth::plan
