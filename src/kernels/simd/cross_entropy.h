#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/simd/storage.h"

namespace zeroth::kernels::simd {

// Rows of `columns` logits, one behind the other, and the column that each row should name. With a
// soft_cap c > 0 a logit x stands for c * tanh(x / c).
struct CrossEntropy {
  Storage storage = Storage::kFp32;
  std::size_t columns = 0;
  float soft_cap = 0;
  const void* logits = nullptr;
  const std::int64_t* targets = nullptr;
};

// What makes probabilities of a row's logits: exp(x - max) * inverse_sum.
struct RowSums {
  float max = 0;
  float inverse_sum = 0;
};

// The losses -log softmax(logits)[target] of the rows [first, last), and their sums.
void cross_entropy(
    const CrossEntropy& work, RowSums* sums, float* losses, std::size_t first, std::size_t last);

// scale times the gradients of those losses; `grads` may be the logits.
void cross_entropy_backward(const CrossEntropy& work,
                            const RowSums* sums,
                            float scale,
                            void* grads,
                            std::size_t first,
                            std::size_t last);

}  // namespace zeroth::kernels::simd
