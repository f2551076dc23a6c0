#include "data/truncation.h"

#include <algorithm>

namespace zeroth::data {
namespace {

std::int64_t answer_share(TurnLengths full, std::int64_t budget) noexcept {
  if (full.answer * 2 < budget) {
    return budget;
  }
  if (full.prompt * 2 < budget) {
    return budget - full.prompt;
  }
  return budget * full.answer / (full.prompt + full.answer);  // the sum is at least `budget` here
}

}  // namespace

TurnLengths fit_turn(TurnLengths full, std::int64_t budget) noexcept {
  if (budget <= 0) {
    return {};
  }
  const std::int64_t answer = std::min(full.answer, answer_share(full, budget));
  return {.prompt = std::min(full.prompt, budget - answer), .answer = answer};
}

}  // namespace zeroth::data
