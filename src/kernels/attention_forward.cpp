#include <cmath>
#include <limits>

#include "kernels/attention_fast.h"
#include "kernels/parallel.h"

#include <ATen/ops/empty.h>

namespace zeroth::kernels {
namespace {

enum Piece : std::size_t { kScores, kSums, kQueries, kFactors, kMaxima, kTotals };

Rooms rooms_for(const Sizes& sizes, int threads) {
  const std::int64_t rows = sizes.cut.max_rows;
  const std::int64_t numbers = rows * sizes.head_dim;
  return {threads, {rows * sizes.cut.row_stride, numbers, numbers, rows, rows, rows}};
}

// The block's out = softmax(scores) v and the logarithms of its sums.
class ForwardBlock {
 public:
  ForwardBlock(const Blocks& blocks, const Block& block, const Rooms& rooms, int thread)
      : blocks_(blocks),
        block_(block),
        scores_(rooms.piece(thread, Piece::kScores)),
        sums_(rooms.piece(thread, Piece::kSums)),
        factors_(rooms.piece(thread, Piece::kFactors)),
        maxima_(rooms.piece(thread, Piece::kMaxima)),
        totals_(rooms.piece(thread, Piece::kTotals)),
        queries_(blocks.packed(blocks.q(), block, rooms.piece(thread, Piece::kQueries))) {
    std::fill_n(maxima_, block.rows, -std::numeric_limits<float>::infinity());
    std::fill_n(totals_, block.rows, 0.0F);
  }

  void add(const Chunk& chunk) {
    const Sizes& sizes = blocks_.sizes();
    blocks_.multiply_by_keys(block_, chunk, queries_, blocks_.k(), scores_);
    simd::exponentials(blocks_.score_rows(block_, chunk, scores_),
                       {.maxima = maxima_, .sums = totals_},
                       factors_,
                       sizes.storage);
    const bool first = chunk.first_key == block_.first_key;
    if (!first) {
      simd::scale_rows(sums_, block_.rows, sizes.head_dim, factors_);
    }
    product_into(blocks_.sums(block_, sums_),
                 blocks_.passed(block_, chunk, scores_),
                 blocks_.v().matrix(block_.pair, chunk.first_key, chunk.keys),
                 first ? Accumulate::kOverwrite : Accumulate::kAdd);
  }

  void finish(const Heads& out, float* log_sums) {
    for (std::int64_t r = 0; r < block_.rows; ++r) {
      log_sums[r] = maxima_[r] + std::log(totals_[r]);
      factors_[r] = 1 / totals_[r];
    }
    const Sizes& sizes = blocks_.sizes();
    simd::store_rows(sums_,
                     block_.rows,
                     sizes.head_dim,
                     factors_,
                     out.rows(block_.pair, block_.first_query),
                     sizes.storage);
  }

 private:
  const Blocks& blocks_;
  const Block& block_;
  float* scores_;
  float* sums_;
  float* factors_;
  float* maxima_;
  float* totals_;
  Matrix queries_;
};

}  // namespace

AttentionResult attention_by_blocks(const AttentionInputs& inputs) {
  const Blocks blocks(inputs);
  const Sizes& sizes = blocks.sizes();
  const AttentionResult result{
      empty_by_tokens(inputs.q),
      at::empty({inputs.q.size(0), sizes.key_heads, sizes.queries, sizes.group}, at::kFloat)};
  const Heads out(result.out, sizes.key_heads);
  auto* log_sums = result.log_sums.data_ptr<float>();
  const int threads = threads_for(2 * sizes.operations());
  const Rooms rooms = rooms_for(sizes, threads);
  for_each_item(sizes.pairs * sizes.num_blocks, threads, [&](std::int64_t item, int thread) {
    // The last blocks see most: they begin first.
    const Block block = blocks.block(item % sizes.pairs, sizes.num_blocks - 1 - item / sizes.pairs);
    ForwardBlock forward(blocks, block, rooms, thread);
    for (const Chunk& chunk : chunks_of(block)) {
      forward.add(chunk);
    }
    forward.finish(out, log_sums + blocks.first_row(block));
  });
  return result;
}

}  // namespace zeroth::kernels
