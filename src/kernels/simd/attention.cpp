#include "kernels/simd/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/attention.cpp"
// clang-format off
#include <hwy/foreach_target.h>
#include "kernels/simd/functions-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();

namespace zeroth::kernels::simd::HWY_NAMESPACE {

constexpr auto kLanes = static_cast<std::int64_t>(HWY_LANES(float));

// The columns that a query may see.
struct Seen {
  std::int64_t begin, end;
};

inline Seen seen_by(const ScoreRows& rows, std::int64_t query) {
  const std::int64_t first = rows.first_keys[query] - rows.first_column_key;
  const std::int64_t own = rows.own_key + query - rows.first_column_key;
  const std::int64_t begin = std::clamp<std::int64_t>(first, 0, rows.columns);
  return {begin, std::clamp<std::int64_t>(own + 1, begin, rows.columns)};
}

template <typename T>
HWY_INLINE void hide_others(T* row, Seen seen, std::int64_t columns) {
  std::memset(row + seen.end, 0, static_cast<std::size_t>(columns - seen.end) * sizeof(T));
  std::memset(row, 0, static_cast<std::size_t>(seen.begin) * sizeof(T));
}

// Which lanes of the vector at column c are seen.
HWY_INLINE auto seen_lanes(Seen seen, std::int64_t c) {
  return hn::FirstN(F32(), static_cast<std::size_t>(std::min(seen.end - c, kLanes)));
}

// A product as a score.
template <bool kCapped>
HWY_INLINE V score_of(const ScoreRows& rows, V x) {
  if constexpr (kCapped) {
    const V part = hn::Mul(x, all(rows.scale / rows.soft_cap));
    return hn::Mul(tanh_of(part), all(rows.soft_cap));
  } else {
    return hn::Mul(x, all(rows.scale));
  }
}

// Leaves the scores where the products were.
template <bool kCapped>
HWY_INLINE float make_scores(const ScoreRows& rows, float* row, Seen seen) {
  const V least = all(-std::numeric_limits<float>::infinity());
  V largest = least;
  for (std::int64_t c = seen.begin; c < seen.end; c += kLanes) {
    const V x = score_of<kCapped>(rows, load(row + c));
    store(x, row + c);
    largest = hn::Max(largest, hn::IfThenElse(seen_lanes(seen, c), x, least));
  }
  return max_of(largest);
}

// A vector is read before the narrower one that begins no later is written, and what is written
// behind the last seen column is overwritten by hide_others.
template <typename T>
HWY_INLINE float make_exponentials(float* row, Seen seen, float maximum) {
  T* out = reinterpret_cast<T*>(row);
  V sum = all(0);
  const V top = all(maximum);
  for (std::int64_t c = seen.begin; c < seen.end; c += kLanes) {
    const V x = exp_of_negative(hn::Sub(load(row + c), top));
    sum = hn::Add(sum, hn::IfThenElseZero(seen_lanes(seen, c), x));
    store(x, out + c);
  }
  return sum_of(sum);
}

template <typename T>
void exponentials_as(const ScoreRows& rows, const RunningRows& running, float* factors) {
  for (std::int64_t r = 0; r < rows.rows; ++r) {
    float* row = rows.scores + r * rows.stride;
    const Seen seen = seen_by(rows, r / rows.rows_per_query);
    factors[r] = 1;
    if (seen.begin < seen.end) {
      const float largest = rows.soft_cap > 0 ? make_scores<true>(rows, row, seen)
                                              : make_scores<false>(rows, row, seen);
      const float maximum = std::max(running.maxima[r], largest);
      factors[r] = std::exp(running.maxima[r] - maximum);
      running.sums[r] = running.sums[r] * factors[r] + make_exponentials<T>(row, seen, maximum);
      running.maxima[r] = maximum;
    }
    hide_others(reinterpret_cast<T*>(row), seen, rows.columns);
  }
}

HWY_INLINE V probability(V score, float log_sum) {
  return exp_of_negative(hn::Sub(score, all(log_sum)));
}

template <bool kCapped>
HWY_INLINE float mean_gradient(
    const ScoreRows& rows, const float* row, const float* grads, Seen seen, float log_sum) {
  V sum = all(0);
  for (std::int64_t c = seen.begin; c < seen.end; c += kLanes) {
    const V p = probability(score_of<kCapped>(rows, load(row + c)), log_sum);
    const V product = hn::Mul(p, load(grads + c));
    sum = hn::Add(sum, hn::IfThenElseZero(seen_lanes(seen, c), product));
  }
  return sum_of(sum);
}

template <typename T, bool kCapped>
HWY_INLINE void make_gradients(
    const ScoreRows& rows, float* row, float* grads, Seen seen, float log_sum, float mean) {
  T* probabilities = reinterpret_cast<T*>(row);
  T* out = reinterpret_cast<T*>(grads);
  const V scale = all(rows.scale);
  for (std::int64_t c = seen.begin; c < seen.end; c += kLanes) {
    const V score = score_of<kCapped>(rows, load(row + c));
    const V p = probability(score, log_sum);
    V grad = hn::Mul(hn::Mul(hn::Sub(load(grads + c), all(mean)), scale), p);
    if constexpr (kCapped) {  // times 1 - tanh^2
      const V tanh = hn::Mul(score, all(1 / rows.soft_cap));
      grad = hn::NegMulAdd(hn::Mul(grad, tanh), tanh, grad);
    }
    store(p, probabilities + c);
    store(grad, out + c);
  }
}

template <typename T, bool kCapped>
void gradients_as(const ScoreRows& rows, float* grads, const float* log_sums, const float* means) {
  for (std::int64_t r = 0; r < rows.rows; ++r) {
    float* row = rows.scores + r * rows.stride;
    float* grad = grads + r * rows.stride;
    const Seen seen = seen_by(rows, r / rows.rows_per_query);
    const float mean =
        means != nullptr ? means[r] : mean_gradient<kCapped>(rows, row, grad, seen, log_sums[r]);
    make_gradients<T, kCapped>(rows, row, grad, seen, log_sums[r], mean);
    hide_others(reinterpret_cast<T*>(row), seen, rows.columns);
    hide_others(reinterpret_cast<T*>(grad), seen, rows.columns);
  }
}

template <typename T>
HWY_INLINE T* row_of(const HeadRows& rows, std::int64_t r) {
  return static_cast<T*>(rows.data) + r / rows.heads * rows.query_stride +
         r % rows.heads * rows.head_stride;
}

template <typename T>
void store_rows_as(const float* x,
                   std::int64_t rows,
                   std::int64_t size,
                   const float* factors,
                   const HeadRows& out) {
  for (std::int64_t r = 0; r < rows; ++r, x += size) {
    const V factor = all(factors == nullptr ? 1 : factors[r]);
    T* to = row_of<T>(out, r);
    for_each_vector(static_cast<std::size_t>(size), [&](std::size_t i, auto lanes) HWY_ATTR {
      lanes.store(hn::Mul(lanes.load(x + i), factor), to + i);
    });
  }
}

template <typename T>
void row_products_as(
    const HeadRows& x, const T* packed, std::int64_t rows, std::int64_t size, float* sums) {
  for (std::int64_t r = 0; r < rows; ++r, packed += size) {
    const T* row = row_of<const T>(x, r);
    V sum = all(0);
    for_each_vector(static_cast<std::size_t>(size), [&](std::size_t i, auto lanes) HWY_ATTR {
      sum = hn::MulAdd(lanes.load(row + i), lanes.load(packed + i), sum);
    });
    sums[r] = sum_of(sum);
  }
}

void exponentials(const ScoreRows& rows,
                  const RunningRows& running,
                  float* factors,
                  Storage storage) {
  with_type(storage,
            [&](auto type) HWY_ATTR { exponentials_as<decltype(type)>(rows, running, factors); });
}

void gradients(const ScoreRows& rows,
               float* grads,
               const float* log_sums,
               const float* means,
               Storage storage) {
  with_type(storage, [&](auto type) HWY_ATTR {
    if (rows.soft_cap > 0) {
      gradients_as<decltype(type), true>(rows, grads, log_sums, means);
    } else {
      gradients_as<decltype(type), false>(rows, grads, log_sums, means);
    }
  });
}

void store_rows(const float* x,
                std::int64_t rows,
                std::int64_t size,
                const float* factors,
                const HeadRows& out,
                Storage storage) {
  with_type(storage, [&](auto type) HWY_ATTR {
    store_rows_as<decltype(type)>(x, rows, size, factors, out);
  });
}

void row_products(const HeadRows& x,
                  const void* packed,
                  std::int64_t rows,
                  std::int64_t size,
                  float* sums,
                  Storage storage) {
  with_type(storage, [&](auto type) HWY_ATTR {
    row_products_as(x, static_cast<const decltype(type)*>(packed), rows, size, sums);
  });
}

void scale_rows(float* x, std::int64_t rows, std::int64_t size, const float* factors) {
  store_rows_as<float>(x, rows, size, factors, {x, size, 0, 1});
}

void add(float* x, const float* y, std::int64_t size) {
  for_each_vector(static_cast<std::size_t>(size), [&](std::size_t i, auto lanes) HWY_ATTR {
    lanes.store(hn::Add(lanes.load(x + i), lanes.load(y + i)), x + i);
  });
}

}  // namespace zeroth::kernels::simd::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zeroth::kernels::simd {

HWY_EXPORT(exponentials);
HWY_EXPORT(gradients);
HWY_EXPORT(store_rows);
HWY_EXPORT(row_products);
HWY_EXPORT(scale_rows);
HWY_EXPORT(add);

void exponentials(const ScoreRows& rows,
                  const RunningRows& running,
                  float* factors,
                  Storage storage) {
  HWY_DYNAMIC_DISPATCH(exponentials)(rows, running, factors, storage);
}

void gradients(const ScoreRows& rows,
               float* grads,
               const float* log_sums,
               const float* means,
               Storage storage) {
  HWY_DYNAMIC_DISPATCH(gradients)(rows, grads, log_sums, means, storage);
}

void store_rows(const float* x,
                std::int64_t rows,
                std::int64_t size,
                const float* factors,
                const HeadRows& out,
                Storage storage) {
  HWY_DYNAMIC_DISPATCH(store_rows)(x, rows, size, factors, out, storage);
}

void row_products(const HeadRows& x,
                  const void* packed,
                  std::int64_t rows,
                  std::int64_t size,
                  float* sums,
                  Storage storage) {
  HWY_DYNAMIC_DISPATCH(row_products)(x, packed, rows, size, sums, storage);
}

void scale_rows(float* x, std::int64_t rows, std::int64_t size, const float* factors) {
  HWY_DYNAMIC_DISPATCH(scale_rows)(x, rows, size, factors);
}

void add(float* x, const float* y, std::int64_t size) {
  HWY_DYNAMIC_DISPATCH(add)(x, y, size);
}

void pack_rows(
    const HeadRows& x, std::int64_t rows, std::int64_t size, void* packed, Storage storage) {
  const std::int64_t bytes = storage == Storage::kFp32 ? 4 : 2;
  const auto row_bytes = static_cast<std::size_t>(size * bytes);
  auto* to = static_cast<char*>(packed);
  for (std::int64_t r = 0; r < rows; ++r, to += row_bytes) {
    const std::int64_t at = r / x.heads * x.query_stride + r % x.heads * x.head_stride;
    std::memcpy(to, static_cast<const char*>(x.data) + at * bytes, row_bytes);
  }
}

}  // namespace zeroth::kernels::simd
#endif  // HWY_ONCE
