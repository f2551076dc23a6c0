#pragma once

#include <array>
#include <cstddef>

#include "kernels/simd/storage.h"

namespace zeroth::kernels::simd {

// Heads of 2 * half numbers, each in one piece; strides, in numbers, of [B, T, H].
struct Rope {
  Storage storage = Storage::kFp32;
  std::size_t tokens = 0;
  std::size_t heads = 0;
  std::size_t half = 0;
  std::array<std::size_t, 3> strides{};
  std::array<std::size_t, 3> out_strides{};
  std::size_t row_of_angles = 0;  // from one row's angles to the next one's; 0: rows share them
  bool backwards = false;         // turns by the negative angle
  const float* cos = nullptr;     // [.., T, half]
  const float* sin = nullptr;
  const void* x = nullptr;
  void* out = nullptr;
};

// Of the places [first, last) of B * T.
void rope(const Rope& work, std::size_t first, std::size_t last);

}  // namespace zeroth::kernels::simd
