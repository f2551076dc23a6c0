#include <algorithm>

#include "arithmetic/loss_chunks.h"
#include "plan/activations.h"

// Follows HeadUnit in models/decoder_units.cpp, kernels/linear_cross_entropy.cpp and
// kernels/cross_entropy.cpp.
namespace zeroth::plan {
namespace {

constexpr std::int64_t kWide = 4;  // fp32

class Head {
 public:
  Head(const formats::ModelConfig& model, bool weights_train, const Work& work)
      : work_(work),
        targets_(work.rows * work.targets),
        hidden_(model.hidden_size),
        vocabulary_(model.vocab_size),
        trained_(weights_train ? vocabulary_ * hidden_ : 0),
        capped_(model.final_softcap > 0) {}

  // Chunks of logits that become their own gradients; the gradients of places and weight add up in
  // fp32 beside them, and are rounded once.
  [[nodiscard]] HeadMemory in_chunks(bool needs_gradients) const {
    const std::int64_t rows =
        std::min(targets_, arithmetic::rows_at_once(vocabulary_, work_.bytes));
    const Bytes chunk = numbers(rows) * vocabulary_;
    if (!needs_gradients) {
      return {.logits = chunk, .working = chunk + places() + row_copy()};
    }
    const Bytes sums = wide(hidden_) * targets_ + wide(trained_);
    const Bytes rounding =
        work_.is_narrow() ? wide(std::min(arithmetic::kRoundedAtOnce, trained_)) : Bytes();
    return {.logits = chunk,
            .working = std::max(chunk + sums + places() * 2 + row_copy(),
                                sums + places() * 2 + numbers(trained_) + rounding)};
  }

  // All logits and their gradient.
  [[nodiscard]] HeadMemory with_logits() const {
    const Bytes logits = all_logits() * 2;
    return {.logits = logits, .working = logits + places() * 2 + row_copy()};
  }

  // Forward: logits, their fp32 copy where they are narrower, log-probabilities. Backward:
  // log-probabilities, probabilities, and those rounded to the type of the logits. A soft-cap keeps
  // its result for its own backward.
  [[nodiscard]] HeadMemory in_steps() const {
    const bool narrow = work_.is_narrow();
    const std::int64_t own = (narrow || capped_ ? 1 : 0) + (narrow && capped_ ? 1 : 0);
    const Bytes logits = wide(2 * vocabulary_) * targets_ + all_logits() * own;
    // The weight's gradient: beside those of logits and places, then beside its fp32 copy.
    const Bytes gradient = numbers(trained_);
    const Bytes widened = narrow ? wide(trained_) : Bytes();
    // The trained product keeps the places normed as well.
    const Bytes kept = trained_ > 0 ? places() * 2 : places();
    return {.logits = logits,
            .working = std::max(logits + kept + row_copy(),
                                gradient + std::max(all_logits() + places(), widened))};
  }

 private:
  [[nodiscard]] Bytes numbers(std::int64_t count) const { return Bytes(work_.bytes) * count; }

  [[nodiscard]] static Bytes wide(std::int64_t count) { return Bytes(kWide) * count; }

  // Only places with a target come in.
  [[nodiscard]] Bytes places() const { return numbers(hidden_) * targets_; }

  // Without each row's last position; of one row, that is a view.
  [[nodiscard]] Bytes row_copy() const {
    return work_.rows > 1 ? numbers(hidden_) * work_.all_tokens() : Bytes();
  }

  [[nodiscard]] Bytes all_logits() const { return numbers(vocabulary_) * targets_; }

  Work work_;
  std::int64_t targets_, hidden_, vocabulary_;
  std::int64_t trained_;  // elements of the matrix, where it trains
  bool capped_;
};

}  // namespace

HeadMemory head_memory(const formats::ModelConfig& model, const UnitSize& unit, const Work& work) {
  const Head head(model, unit.head_trains, work);
  if (!work.fast) {
    return head.in_steps();
  }
  return unit.ranks > 0 ? head.with_logits() : head.in_chunks(/*needs_gradients=*/true);
}

HeadMemory evaluated_head(const formats::ModelConfig& model, const Work& work) {
  const Head head(model, /*weights_train=*/false, work);
  return work.fast ? head.in_chunks(/*needs_gradients=*/false) : head.in_steps();
}

}  // namespace zeroth::plan
