#pragma once

#include <cstdint>

#include "kernels/simd/storage.h"

// The passes over rows of scores between the products of attention.
namespace zeroth::kernels::simd {

// Products of some queries with a range of keys, [rows, stride] of which `columns` count. Rows of
// one query stand together, one for each query head of a group. A row has room for one vector more
// than its columns, and every pass may write there.
struct ScoreRows {
  float* scores;
  std::int64_t stride;
  std::int64_t rows, columns;
  std::int64_t rows_per_query;
  const std::int32_t* first_keys;  // of each query
  std::int64_t own_key;            // of the first query; the next one's is the next
  std::int64_t first_column_key;   // which key column 0 is
  float scale, soft_cap;           // no cap: 0
};

// What each row of softmax has seen in the columns so far: the largest score and the sum of
// exponentials relative to it; begins with minus infinity and 0.
struct RunningRows {
  float* maxima;
  float* sums;
};

// Scores become exponentials relative to each row's new maximum, 0 where a query may not see, in
// place: row r lies where it lay, its numbers, now of type `storage`, from its beginning.
// factors[r]: what earlier sums of row r, and all that was computed with them, have to be
// multiplied by; running sums already are.
void exponentials(const ScoreRows& rows,
                  const RunningRows& running,
                  float* factors,
                  Storage storage);

// Scores become probabilities (given log_sums, the logarithm of each row's sum of exponentials),
// and `grads`, the gradients of the probabilities in the same layout, those of the products; both
// in place as above. means[r] is the mean of row r's gradients under its probabilities; none where
// these columns are all that its query sees: then it is summed here, from unrounded numbers.
void gradients(const ScoreRows& rows,
               float* grads,
               const float* log_sums,
               const float* means,
               Storage storage);

// Where the rows of a block stand in a tensor: row r of query r / heads and head r % heads. Strides
// in elements.
struct HeadRows {
  void* data;
  std::int64_t query_stride, head_stride;
  std::int64_t heads;
};

// out[r] = factors[r] * x[r], for x [rows, size] without gaps; no factors: 1.
void store_rows(const float* x,
                std::int64_t rows,
                std::int64_t size,
                const float* factors,
                const HeadRows& out,
                Storage storage);

// Copies rows of a tensor to [rows, size] without gaps.
void pack_rows(
    const HeadRows& x, std::int64_t rows, std::int64_t size, void* packed, Storage storage);

// sums[r]: the inner product of row r of `x` and of packed rows [rows, size].
void row_products(const HeadRows& x,
                  const void* packed,
                  std::int64_t rows,
                  std::int64_t size,
                  float* sums,
                  Storage storage);

// x[r] *= factors[r], for x [rows, size] without gaps.
void scale_rows(float* x, std::int64_t rows, std::int64_t size, const float* factors);

// x += y.
void add(float* x, const float* y, std::int64_t size);

}  // namespace zeroth::kernels::simd
