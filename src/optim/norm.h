#pragma once

#include <span>

namespace zeroth::optim {

// The sum of squares in fp64, in an order that depends on the length alone (never on the number of
// threads).
[[nodiscard]] double sum_of_squares(std::span<const float> values);

// What gradients are multiplied by so that their norm does not exceed `max_norm` (0: no limit);
// PyTorch's clip_grad_norm_ rule.
[[nodiscard]] double clip_factor(double norm, double max_norm) noexcept;

}  // namespace zeroth::optim
