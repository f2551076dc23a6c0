#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/simd/storage.h"

namespace zeroth::kernels::simd {

// Rows of `columns` numbers, one behind the other, some of which are summed.
struct RowSum {
  Storage storage = Storage::kFp32;
  std::size_t columns = 0;
  const void* rows = nullptr;
};

// sum[columns] = 0 + the rows at these places, one after the other in fp32, rounded once.
void sum_rows(const RowSum& work, const std::int64_t* places, std::size_t count, void* sum);

}  // namespace zeroth::kernels::simd
