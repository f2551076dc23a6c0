#include "kernels/attention_blocks.h"

#include "kernels/rows.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

namespace zeroth::kernels {
namespace {

using arithmetic::kBlockGrain;
using arithmetic::kKeysPerChunk;

constexpr std::int64_t kLine = 16;  // floats of a cache line

std::int64_t pieces_of(std::int64_t size, std::int64_t piece) {
  return (size + piece - 1) / piece;
}

}  // namespace

Sizes::Sizes(const AttentionInputs& inputs)
    : pairs(inputs.k.size(0) * inputs.k.size(1)),
      key_heads(inputs.k.size(1)),
      group(inputs.q.size(1) / inputs.k.size(1)),
      queries(inputs.q.size(2)),
      keys(inputs.k.size(2)),
      head_dim(inputs.q.size(3)),
      cut(arithmetic::cut_attention(group, queries, keys)),
      num_blocks(pieces_of(queries, cut.block)),
      storage(storage_of(inputs.q)) {
}

Blocks::Blocks(const AttentionInputs& inputs)
    : sizes_(inputs),
      q_(inputs.q, sizes_.key_heads),
      k_(inputs.k, sizes_.key_heads),
      v_(inputs.v, sizes_.key_heads),
      first_keys_(inputs.first_keys),
      scale_(static_cast<float>(inputs.scale)),
      soft_cap_(static_cast<float>(inputs.soft_cap)) {
}

Block Blocks::block(std::int64_t pair, std::int64_t index) const {
  const std::int64_t first_query = index * sizes_.cut.block;
  const std::int64_t queries = std::min(sizes_.cut.block, sizes_.queries - first_query);
  const std::int64_t row = first_keys_.dim() == 2 ? pair / sizes_.key_heads : 0;
  const std::int32_t* first_keys =
      first_keys_.data_ptr<std::int32_t>() + row * sizes_.queries + first_query;
  const std::int64_t least = *std::min_element(first_keys, first_keys + queries);
  return {.pair = pair,
          .first_query = first_query,
          .queries = queries,
          .rows = queries * sizes_.group,
          .first_keys = first_keys,
          .first_key = least / kBlockGrain * kBlockGrain,
          .end_key = own_key(first_query) + queries};
}

simd::ScoreRows Blocks::score_rows(const Block& block, const Chunk& chunk, float* scores) const {
  return {.scores = scores,
          .stride = sizes_.cut.row_stride,
          .rows = block.rows,
          .columns = chunk.keys,
          .rows_per_query = sizes_.group,
          .first_keys = block.first_keys,
          .own_key = own_key(block.first_query),
          .first_column_key = chunk.first_key,
          .scale = scale_,
          .soft_cap = soft_cap_};
}

void Blocks::multiply_by_keys(const Block& block,
                              const Chunk& chunk,
                              const Matrix& rows,
                              const Heads& x,
                              float* scores) const {
  product_into({scores, block.rows, chunk.keys, sizes_.cut.row_stride, 1, at::kFloat},
               rows,
               transposed(x.matrix(block.pair, chunk.first_key, chunk.keys)),
               Accumulate::kOverwrite);
}

Matrix Blocks::passed(const Block& block, const Chunk& chunk, float* scores) const {
  const std::int64_t per_float = sizes_.storage == simd::Storage::kFp32 ? 1 : 2;
  return {scores, block.rows, chunk.keys, sizes_.cut.row_stride * per_float, 1, q_.dtype};
}

Matrix Blocks::packed(const Heads& x, const Block& block, void* room) const {
  simd::pack_rows(
      x.rows(block.pair, block.first_query), block.rows, sizes_.head_dim, room, sizes_.storage);
  return {room, block.rows, sizes_.head_dim, sizes_.head_dim, 1, q_.dtype};
}

Matrix Blocks::sums(const Block& block, float* room) const {
  return {room, block.rows, sizes_.head_dim, sizes_.head_dim, 1, at::kFloat};
}

std::vector<Chunk> chunks_of(const Block& block) {
  std::vector<Chunk> chunks;
  for (std::int64_t key = block.first_key; key < block.end_key; key += kKeysPerChunk) {
    chunks.push_back({key, std::min(kKeysPerChunk, block.end_key - key)});
  }
  return chunks;
}

Matrix transposed(const Matrix& matrix) {
  return {matrix.data,
          matrix.columns,
          matrix.rows,
          matrix.column_stride,
          matrix.row_stride,
          matrix.dtype};
}

Rooms::Rooms(int threads, const std::vector<std::int64_t>& piece_floats) {
  for (const std::int64_t floats : piece_floats) {
    offsets_.push_back(floats_);
    floats_ += pieces_of(floats, kLine) * kLine;
  }
  memory_ = at::empty({threads, floats_}, at::kFloat);
}

float* Rooms::piece(int thread, std::size_t index) const {
  return memory_.data_ptr<float>() + thread * floats_ + offsets_[index];
}

at::Tensor empty_by_tokens(const at::Tensor& like) {
  const std::int64_t heads = like.size(1);
  const std::int64_t tokens = like.size(2);
  const std::int64_t size = like.size(3);
  return at::empty_strided(
      like.sizes(), {tokens * heads * size, size, heads * size, 1}, like.options());
}

}  // namespace zeroth::kernels
