#include "kernels/simd/embedding.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/embedding.cpp"
// clang-format off
#include <hwy/foreach_target.h>
#include "kernels/simd/lanes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();

namespace zeroth::kernels::simd::HWY_NAMESPACE {

template <typename T>
HWY_INLINE void sum_row_by_row(
    const T* rows, std::size_t columns, const std::int64_t* places, std::size_t count, T* to) {
  // Columns side by side, in registers while the rows pass.
  constexpr std::size_t kBeside = 8;
  const std::size_t tile = kBeside * hn::Lanes(F32());
  std::size_t first = 0;
  for (; first + tile <= columns; first += tile) {
    V sums[kBeside];
    for (V& sum : sums) {
      sum = all(0);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const T* const row = rows + static_cast<std::size_t>(places[i]) * columns + first;
      for (std::size_t v = 0; v < kBeside; ++v) {
        sums[v] = hn::Add(sums[v], load(row + v * hn::Lanes(F32())));
      }
    }
    for (std::size_t v = 0; v < kBeside; ++v) {
      store(sums[v], to + first + v * hn::Lanes(F32()));
    }
  }
  for_each_vector(columns - first, [&](std::size_t place, auto lanes) HWY_ATTR {
    V sum = all(0);
    for (std::size_t i = 0; i < count; ++i) {
      const T* const row = rows + static_cast<std::size_t>(places[i]) * columns + first;
      sum = hn::Add(sum, lanes.load(row + place));
    }
    lanes.store(sum, to + first + place);
  });
}

void sum_of_rows(const RowSum& work, const std::int64_t* places, std::size_t count, void* sum) {
  with_type(work.storage, [&](auto type) HWY_ATTR {
    using T = decltype(type);
    sum_row_by_row(
        static_cast<const T*>(work.rows), work.columns, places, count, static_cast<T*>(sum));
  });
}

}  // namespace zeroth::kernels::simd::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace zeroth::kernels::simd {

HWY_EXPORT(sum_of_rows);

void sum_rows(const RowSum& work, const std::int64_t* places, std::size_t count, void* sum) {
  HWY_DYNAMIC_DISPATCH(sum_of_rows)(work, places, count, sum);
}

}  // namespace zeroth::kernels::simd

#endif  // HWY_ONCE
