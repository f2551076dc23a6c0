#include <algorithm>

#include "arithmetic/attention_cut.h"
#include "plan/activations.h"

// Follows models/decoder_units.cpp, models/building_blocks.cpp and the autograd functions in
// kernels/: what each saves for its backward, and what its backward holds at once. Change it with
// them; tests/parity/activations_test.cpp compares both.
namespace zeroth::plan {
namespace {

constexpr std::int64_t kWide = 4;  // fp32

// Bytes of one token in one block, by the names of models/building_blocks.cpp.
class Block {
 public:
  Block(const formats::ModelConfig& model, const BlockTraining& training, const Work& work)
      : training_(training),
        bytes_(work.bytes),
        narrow_(work.is_narrow()),
        fast_(work.fast),
        hidden_(model.hidden_size),
        query_(model.num_attention_heads * model.head_dim),
        key_(model.num_key_value_heads * model.head_dim),
        inner_(model.intermediate_size),
        scores_(model.num_attention_heads * work.tokens),
        query_heads_(model.num_attention_heads),
        key_heads_(model.num_key_value_heads),
        head_dim_(model.head_dim),
        row_tokens_(work.tokens),
        norms_heads_(model.qk_norm),
        norms_behind_(model.post_norms),
        caps_scores_(model.attention_softcap > 0) {}

  [[nodiscard]] Bytes saved() const {
    return norm(first_norm_needs()) +
           inputs_of({BlockLinear::kQuery, BlockLinear::kKey, BlockLinear::kValue},
                     hidden_,
                     first_norm_needs()) +
           head_norms() + attention() + output_input() + behind_attention() + second_norm() +
           mlp() + behind_mlp() + adapters() + output();
  }

  [[nodiscard]] Bytes output() const { return number(hidden_); }

  // Each moment of the backward: what lives besides `saved`, less what the backward has freed of
  // it.

  // The norm behind the MLP is the first of all.
  [[nodiscard]] Bytes in_last_norm() const { return norms_behind_ ? norm_work(hidden_) : Bytes(); }

  // Through down and into gate * up: the gradients of the output, the product and both factors,
  // which the reference makes one after the other.
  [[nodiscard]] Bytes in_mlp() const {
    const Bytes freed = inputs_of({BlockLinear::kDown}, inner_, true) + behind_mlp();
    if (fast_) {
      return number(hidden_ + 3 * inner_) - freed;
    }
    return number(hidden_ + 2 * inner_) + std::max(Bytes() - behind_mlp(), number(inner_) - freed);
  }

  [[nodiscard]] Bytes in_norm() const {
    return norm_work(hidden_) - behind_mlp() - mlp() - second_inputs();
  }

  // Scores and their gradient in fp32, softmax of both; then the gradients of q, k and v. By blocks
  // there are these alone.
  [[nodiscard]] Bytes in_attention() const {
    if (!attention_needs()) {
      return Bytes();
    }
    if (fast_) {
      return number(2 * hidden_ + 2 * query_ + 2 * key_) - above_attention();
    }
    const Bytes softmax = Bytes(narrow_ ? 12 : 8) * scores_ + number(2 * hidden_ + 2 * query_);
    const Bytes products =
        Bytes(narrow_ ? 6 : 8) * scores_ + number(2 * hidden_ + 3 * query_ + 2 * key_);
    // Beside two gradients of the scores, their tanh and the product of tanh and gradient.
    const Bytes capped =
        caps_scores_ ? Bytes(4 * kWide) * scores_ + number(2 * hidden_ + 2 * query_) : Bytes();
    return std::max({softmax, products, capped}) - above_attention();
  }

  // Of one thread, whatever the number of tokens.
  [[nodiscard]] Bytes attention_scratch() const {
    const std::int64_t group = query_heads_ / std::max<std::int64_t>(key_heads_, 1);
    return fast_ && attention_needs()
               ? Bytes(arithmetic::attention_scratch(
                     arithmetic::cut_attention(group, row_tokens_, row_tokens_),
                     row_tokens_,
                     head_dim_))
               : Bytes();
  }

  // The norm of q's heads, with the gradients of k and v at hand.
  [[nodiscard]] Bytes in_head_norm() const {
    if (!norms_heads_ || !attention_needs()) {
      return Bytes();
    }
    return norm_work(query_) + number(hidden_ + 2 * key_) - above_attention() - attention();
  }

  // All is done: only the gradients with respect to input and output are left of the block.
  [[nodiscard]] Bytes at_the_end() const { return number(2 * hidden_) + output() - saved(); }

 private:
  [[nodiscard]] Bytes number(std::int64_t count) const { return Bytes(bytes_) * count; }

  [[nodiscard]] bool adapted(BlockLinear linear) const {
    return training_.size->adapted[static_cast<std::size_t>(linear)];
  }

  [[nodiscard]] bool trains(BlockLinear linear) const {
    return training_.weights || adapted(linear) ||
           training_.size->trained[static_cast<std::size_t>(linear)];
  }

  // The reference widens its operands and multiplies step by step.
  [[nodiscard]] Bytes norm_work(std::int64_t width) const {
    if (fast_) {
      return number(3 * width);
    }
    const std::int64_t wide_copies = narrow_ ? 6 : 5;
    return Bytes(kWide * wide_copies) * width + number((narrow_ ? 3 : 2) * width);
  }

  // What the backward has freed when it comes to the attention.
  [[nodiscard]] Bytes above_attention() const {
    return behind_mlp() + mlp() + second_norm() + behind_attention() + output_input();
  }

  // Gradients go through a value where anything before it trains.
  [[nodiscard]] bool first_norm_needs() const { return training_.weights || training_.input_needs; }

  [[nodiscard]] bool attention_needs() const {
    return first_norm_needs() || trains(BlockLinear::kQuery) || trains(BlockLinear::kKey) ||
           trains(BlockLinear::kValue);
  }

  [[nodiscard]] bool middle_needs() const {
    return attention_needs() || trains(BlockLinear::kOutput);
  }

  // Dropout makes each adapter an input of its own.
  [[nodiscard]] bool apart() const { return training_.dropout && !training_.weights; }

  // The shared input of some linears: kept once, or with dropout once for each adapter, and its
  // factors where a gradient goes through them.
  [[nodiscard]] Bytes inputs_of(std::initializer_list<BlockLinear> linears,
                                std::int64_t width,
                                bool needs) const {
    const auto count =
        std::count_if(linears.begin(), linears.end(), [&](BlockLinear l) { return trains(l); });
    return number(width) * (apart() ? count * (needs ? 2 : 1) : std::min<std::int64_t>(count, 1));
  }

  // rms_norm keeps its input, which belongs to somebody else, and 1 / rms.
  [[nodiscard]] static Bytes norm(bool needs) { return Bytes(needs ? kWide : 0); }

  // The norms of q's and k's heads keep what comes in, and 1 / rms of each head.
  [[nodiscard]] Bytes head_norms() const {
    return norms_heads_ && attention_needs()
               ? number(query_ + key_) + Bytes(kWide) * (query_heads_ + key_heads_)
               : Bytes();
  }

  // A norm behind attention or MLP keeps their result.
  [[nodiscard]] Bytes norm_behind(bool needs) const {
    return norms_behind_ && needs ? number(hidden_) + norm(true) : Bytes();
  }

  [[nodiscard]] Bytes behind_attention() const { return norm_behind(middle_needs()); }

  [[nodiscard]] Bytes behind_mlp() const {
    return norm_behind(middle_needs() || adapted(BlockLinear::kGate) || adapted(BlockLinear::kUp) ||
                       adapted(BlockLinear::kDown));
  }

  // q, k and v, and the softmax's weights in the compute type; by blocks, a number for each query
  // and the result, which may also be what goes into the output's linear.
  [[nodiscard]] Bytes attention() const {
    if (!attention_needs()) {
      return Bytes();
    }
    if (!fast_) {
      return number(query_ + 2 * key_ + scores_);
    }
    const bool has_result = trains(BlockLinear::kOutput) && !apart();
    return number(query_ + 2 * key_) + Bytes(kWide) * query_heads_ +
           (has_result ? Bytes() : number(query_));
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

  // silu keeps gate, the product keeps silu(gate) and up, in one kernel gate and up; down keeps
  // the product.
  [[nodiscard]] Bytes mlp() const {
    const bool gate = middle_needs() || trains(BlockLinear::kGate);
    const bool up = middle_needs() || trains(BlockLinear::kUp);
    const std::int64_t in_steps = (gate ? 2 : 0) + (up ? 1 : 0);
    return number(inner_) * (fast_ ? (gate || up ? 2 : 0) : in_steps) +
           inputs_of({BlockLinear::kDown}, inner_, gate || up);
  }

  // x A^T of each adapter, and with DoRA what the magnitudes multiply.
  [[nodiscard]] Bytes adapters() const {
    return number(training_.size->ranks + training_.size->dora_outputs);
  }

  const BlockTraining& training_;
  std::int64_t bytes_;
  bool narrow_, fast_;
  std::int64_t hidden_, query_, key_, inner_;
  std::int64_t scores_;  // of one query token with all keys, over the heads
  std::int64_t query_heads_, key_heads_, head_dim_, row_tokens_;
  bool norms_heads_, norms_behind_, caps_scores_;
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
  return {
      .saved = block.saved() * tokens,
      .working = std::max(
          {block.in_last_norm() * tokens,
           block.in_mlp() * tokens + gradients(inner),
           block.in_norm() * tokens + gradients(3 * inner),
           block.in_attention() * tokens + block.attention_scratch() + gradients(3 * inner + query),
           block.in_head_norm() * tokens + gradients(3 * inner + query),
           block.at_the_end() * tokens + gradients(training.size->trainable) + widened})};
}

}  // namespace zeroth::plan
