#pragma once

#include <cstddef>

#include "kernels/simd/storage.h"

namespace zeroth::kernels::simd {

// Rows of `columns` numbers, one behind the other; `factor` is what the normed row is multiplied
// with, `inverse` holds one number a row.
struct RmsNormForward {
  Storage storage = Storage::kFp32;
  std::size_t columns = 0;
  float epsilon = 0;
  bool rounds_first = false;  // to the storage's type, before the multiplication by the factor
  const float* factor = nullptr;
  const void* x = nullptr;
  const void* added = nullptr;  // to x before all else; nullptr: nothing
  void* sum = nullptr;          // x + added, rounded; what is normed. Where something is added
  void* y = nullptr;
  float* inverse = nullptr;
};

struct RmsNormBackward {
  Storage storage = Storage::kFp32;
  std::size_t columns = 0;
  const float* factor = nullptr;
  const void* x = nullptr;  // what was normed
  const float* inverse = nullptr;
  const void* grad = nullptr;
  const void* grad_beside = nullptr;  // of x by another way, added to its gradient; nullptr: none
  void* grad_x = nullptr;             // nullptr: not wanted
};

// Of the rows [first, last).
void rms_norm(const RmsNormForward& work, std::size_t first, std::size_t last);
// Adds the gradient of the factor to grad_factor, row by row, where it is not nullptr.
void rms_norm(const RmsNormBackward& work, std::size_t first, std::size_t last, float* grad_factor);

}  // namespace zeroth::kernels::simd
