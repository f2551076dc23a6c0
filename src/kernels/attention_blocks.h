#pragma once

#include <algorithm>
#include <vector>

#include "arithmetic/attention_cut.h"
#include "kernels/product.h"
#include "kernels/simd/attention.h"

#include <ATen/core/Tensor.h>

// How attention is cut into blocks of queries and chunks of keys; for attention_forward.cpp and
// attention_backward.cpp alone.
namespace zeroth::kernels {

// q [B, H, T, D], k and v [B, K, S, D], of one type that has products, with gapless last dims;
// first_keys int32 [T] or [B, T].
struct AttentionInputs {
  at::Tensor q, k, v;
  at::Tensor first_keys;
  double scale = 1;
  double soft_cap = 0;
};

// A tensor [B, heads, tokens, D] by pairs: a row of the batch and a key head, whose queries read
// it.
struct Heads {
  Heads(const at::Tensor& tensor, std::int64_t key_heads)
      : data(static_cast<char*>(tensor.data_ptr())),
        dtype(tensor.scalar_type()),
        element_bytes(static_cast<std::int64_t>(tensor.element_size())),
        num_key_heads(key_heads),
        heads_per_pair(tensor.size(1) / key_heads),
        size(tensor.size(3)),
        batch_stride(tensor.stride(0)),
        head_stride(tensor.stride(1)),
        token_stride(tensor.stride(2)) {}

  [[nodiscard]] void* at(std::int64_t pair, std::int64_t token) const {
    const std::int64_t offset = pair / num_key_heads * batch_stride +
                                pair % num_key_heads * heads_per_pair * head_stride +
                                token * token_stride;
    return data + offset * element_bytes;
  }

  [[nodiscard]] simd::HeadRows rows(std::int64_t pair, std::int64_t token) const {
    return {at(pair, token), token_stride, head_stride, heads_per_pair};
  }

  // Of a key head: [tokens, D].
  [[nodiscard]] Matrix matrix(std::int64_t pair, std::int64_t token, std::int64_t tokens) const {
    return {at(pair, token), tokens, size, token_stride, 1, dtype};
  }

  char* data;
  at::ScalarType dtype;
  std::int64_t element_bytes, num_key_heads, heads_per_pair, size;
  std::int64_t batch_stride, head_stride, token_stride;
};

struct Sizes {
  explicit Sizes(const AttentionInputs& inputs);

  // Multiplications and additions of one product of queries and keys, of all pairs.
  [[nodiscard]] std::int64_t operations() const {
    return 2 * pairs * queries * group * keys * head_dim;
  }

  std::int64_t pairs, key_heads, group, queries, keys, head_dim;
  arithmetic::AttentionCut cut;
  std::int64_t num_blocks;
  simd::Storage storage;
};

// Some queries of a pair, and the keys that one of them may see.
struct Block {
  std::int64_t pair, first_query, queries, rows;
  const std::int32_t* first_keys;
  std::int64_t first_key, end_key;
};

// Some of a block's keys.
struct Chunk {
  std::int64_t first_key, keys;
};

class Blocks {
 public:
  explicit Blocks(const AttentionInputs& inputs);

  [[nodiscard]] const Sizes& sizes() const { return sizes_; }

  [[nodiscard]] const Heads& q() const { return q_; }

  [[nodiscard]] const Heads& k() const { return k_; }

  [[nodiscard]] const Heads& v() const { return v_; }

  [[nodiscard]] Block block(std::int64_t pair, std::int64_t index) const;

  // Which row of all pairs' rows the block's first one is.
  [[nodiscard]] std::int64_t first_row(const Block& block) const {
    return (block.pair * sizes_.queries + block.first_query) * sizes_.group;
  }

  [[nodiscard]] simd::ScoreRows score_rows(const Block& block,
                                           const Chunk& chunk,
                                           float* scores) const;

  // scores = rows x^T for rows [rows, D] and the chunk's keys (or values) x.
  void multiply_by_keys(const Block& block,
                        const Chunk& chunk,
                        const Matrix& rows,
                        const Heads& x,
                        float* scores) const;

  // What a pass left in place of scores: [rows, keys].
  [[nodiscard]] Matrix passed(const Block& block, const Chunk& chunk, float* scores) const;

  // The block's rows of a tensor, copied to `room`: [rows, D].
  [[nodiscard]] Matrix packed(const Heads& x, const Block& block, void* room) const;

  // fp32 [rows, D] at `room`.
  [[nodiscard]] Matrix sums(const Block& block, float* room) const;

 private:
  [[nodiscard]] std::int64_t own_key(std::int64_t query) const {
    return sizes_.keys - sizes_.queries + query;
  }

  Sizes sizes_;
  Heads q_, k_, v_;
  at::Tensor first_keys_;
  float scale_, soft_cap_;
};

// The chunks of a block's keys, first to last.
[[nodiscard]] std::vector<Chunk> chunks_of(const Block& block);

[[nodiscard]] Matrix transposed(const Matrix& matrix);

// Memory of the threads, cut into pieces that begin at cache lines.
class Rooms {
 public:
  Rooms(int threads, const std::vector<std::int64_t>& piece_floats);

  [[nodiscard]] float* piece(int thread, std::size_t index) const;

 private:
  std::vector<std::int64_t> offsets_;
  std::int64_t floats_ = 0;
  at::Tensor memory_;
};

// An uninitialised tensor of like's shape [B, heads, tokens, D], laid out as [B, tokens, heads, D].
[[nodiscard]] at::Tensor empty_by_tokens(const at::Tensor& like);

}  // namespace zeroth::kernels
