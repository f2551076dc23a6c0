#include <algorithm>

#include "plan/activations.h"

// Follows HeadUnit in models/decoder_units.cpp and kernels/cross_entropy.cpp.
namespace zeroth::plan {

HeadMemory head_memory(const formats::ModelConfig& model, bool weights_train, const Work& work) {
  constexpr std::int64_t kWide = 4;
  const std::int64_t targets = work.rows * work.targets;
  const std::int64_t vocabulary = model.vocab_size;
  const bool narrow = work.is_narrow();
  // Forward: logits, their fp32 copy where they are narrower, log-probabilities. Backward:
  // log-probabilities, probabilities, and those rounded to the type of the logits. A soft-cap keeps
  // its result for its own backward.
  const bool capped = model.final_softcap > 0;
  const Bytes one_logit =
      Bytes(2 * kWide + (narrow || capped ? work.bytes : 0) + (narrow && capped ? work.bytes : 0));
  const Bytes logits = one_logit * vocabulary * targets;
  // Only places with a target come in; the trained product keeps them normed as well.
  const Bytes places = Bytes(work.bytes) * model.hidden_size * targets;
  const Bytes kept = weights_train ? places * 2 : places;
  const Bytes row_copy = Bytes(work.bytes) * model.hidden_size * work.all_tokens();
  // The weight's gradient: beside those of logits and places, then beside its fp32 copy.
  const std::int64_t numel = weights_train ? vocabulary * model.hidden_size : 0;
  const Bytes gradient = Bytes(work.bytes) * numel;
  const Bytes widened = Bytes(narrow ? kWide : 0) * numel;
  const Bytes beside_logits = Bytes(work.bytes) * vocabulary * targets + places;
  return {
      .logits = logits,
      .working = std::max(logits + kept + row_copy, gradient + std::max(beside_logits, widened))};
}

}  // namespace zeroth::plan
