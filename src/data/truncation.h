#pragma once

#include <cstdint>

namespace zeroth::data {

struct TurnLengths {
  std::int64_t prompt = 0;
  std::int64_t answer = 0;
  friend bool operator==(const TurnLengths&, const TurnLengths&) = default;
};

// How many leading tokens of a turn's prompt and answer stay when `budget` tokens are left for the
// row. LLaMA-Factory's rule: an answer shorter than half the budget stays whole and the prompt is
// cut; else a prompt shorter than half stays whole and the answer is cut; else both are cut in
// proportion.
[[nodiscard]] TurnLengths fit_turn(TurnLengths full, std::int64_t budget) noexcept;

}  // namespace zeroth::data
