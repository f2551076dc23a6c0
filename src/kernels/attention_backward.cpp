#include "kernels/attention_fast.h"
#include "kernels/parallel.h"

#include <ATen/ops/empty.h>

namespace zeroth::kernels {
namespace {

enum Piece : std::size_t { kScores, kGradients, kSums, kQueries, kGradOut, kMeans };

Rooms rooms_for(const Sizes& sizes, int threads) {
  const std::int64_t rows = sizes.cut.max_rows;
  const std::int64_t scores = rows * sizes.cut.row_stride;
  const std::int64_t numbers = rows * sizes.head_dim;
  return {threads, {scores, scores, numbers, numbers, numbers, rows}};
}

// Where the gradients of a pair's keys and values add up over blocks of queries: fp32 [S, D] each.
struct KeySums {
  float* k;
  float* v;
  std::int64_t keys, head_dim;

  [[nodiscard]] Matrix of(float* sums, const Chunk& chunk) const {
    return {sums + chunk.first_key * head_dim, chunk.keys, head_dim, head_dim, 1, at::kFloat};
  }

  [[nodiscard]] std::int64_t size() const { return keys * head_dim; }
};

// One of these for each slot.
class AllKeySums {
 public:
  AllKeySums(const Sizes& sizes, std::int64_t slots)
      : sizes_(sizes), memory_(at::empty({slots, 2, sizes.keys, sizes.head_dim}, at::kFloat)) {}

  [[nodiscard]] KeySums slot(std::int64_t index) const {
    const std::int64_t size = sizes_.keys * sizes_.head_dim;
    float* k = memory_.data_ptr<float>() + index * 2 * size;
    return {k, k + size, sizes_.keys, sizes_.head_dim};
  }

 private:
  const Sizes& sizes_;
  at::Tensor memory_;
};

// A block's share of all gradients.
class BackwardBlock {
 public:
  BackwardBlock(const Blocks& blocks,
                const Block& block,
                const Heads& grad_out,
                const Rooms& rooms,
                int thread)
      : blocks_(blocks),
        block_(block),
        scores_(rooms.piece(thread, Piece::kScores)),
        gradients_(rooms.piece(thread, Piece::kGradients)),
        sums_(rooms.piece(thread, Piece::kSums)),
        means_(rooms.piece(thread, Piece::kMeans)),
        queries_(blocks.packed(blocks.q(), block, rooms.piece(thread, Piece::kQueries))),
        grad_out_(blocks.packed(grad_out, block, rooms.piece(thread, Piece::kGradOut))) {}

  // Over all keys that the block sees.
  void add_all(const Heads& out, const float* log_sums, const KeySums& sums) {
    const std::vector<Chunk> chunks = chunks_of(block_);
    const bool in_chunks = chunks.size() > 1;
    if (in_chunks) {  // the mean of grad v_j under p_j is grad (sum of p_j v_j)
      simd::row_products(out.rows(block_.pair, block_.first_query),
                         grad_out_.data,
                         block_.rows,
                         blocks_.sizes().head_dim,
                         means_,
                         blocks_.sizes().storage);
    }
    for (const Chunk& chunk : chunks) {
      add(chunk, log_sums, in_chunks ? means_ : nullptr, sums);
    }
  }

  void finish(const Heads& grad_q) {
    simd::store_rows(sums_,
                     block_.rows,
                     blocks_.sizes().head_dim,
                     nullptr,
                     grad_q.rows(block_.pair, block_.first_query),
                     blocks_.sizes().storage);
  }

 private:
  void add(const Chunk& chunk, const float* log_sums, const float* means, const KeySums& sums) {
    blocks_.multiply_by_keys(block_, chunk, queries_, blocks_.k(), scores_);
    blocks_.multiply_by_keys(block_, chunk, grad_out_, blocks_.v(), gradients_);
    simd::gradients(blocks_.score_rows(block_, chunk, scores_),
                    gradients_,
                    log_sums,
                    means,
                    blocks_.sizes().storage);
    const Matrix weights = blocks_.passed(block_, chunk, scores_);
    const Matrix grad_scores = blocks_.passed(block_, chunk, gradients_);
    product_into(sums.of(sums.v, chunk), transposed(weights), grad_out_, Accumulate::kAdd);
    product_into(sums.of(sums.k, chunk), transposed(grad_scores), queries_, Accumulate::kAdd);
    const bool first = chunk.first_key == block_.first_key;
    product_into(blocks_.sums(block_, sums_),
                 grad_scores,
                 blocks_.k().matrix(block_.pair, chunk.first_key, chunk.keys),
                 first ? Accumulate::kOverwrite : Accumulate::kAdd);
  }

  const Blocks& blocks_;
  const Block& block_;
  float* scores_;
  float* gradients_;
  float* sums_;
  float* means_;
  Matrix queries_;
  Matrix grad_out_;
};

// Into how many parts the blocks of a pair are dealt where pairs alone leave threads without work.
std::int64_t parts_of(const Sizes& sizes, int threads) {
  constexpr std::int64_t kItemsPerThread = 4;
  if (threads == 1 || sizes.pairs == 0) {
    return 1;
  }
  const std::int64_t wanted = (kItemsPerThread * threads + sizes.pairs - 1) / sizes.pairs;
  return std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(sizes.num_blocks, 1));
}

class Backward {
 public:
  Backward(const AttentionInputs& inputs, const AttentionResult& result, const at::Tensor& grad_out)
      : blocks_(inputs),
        sizes_(blocks_.sizes()),
        out_(result.out, sizes_.key_heads),
        grad_out_(grad_out, sizes_.key_heads),
        log_sums_(result.log_sums.data_ptr<float>()),
        grads_{empty_by_tokens(inputs.q), empty_by_tokens(inputs.k), empty_by_tokens(inputs.v)},
        grad_q_(grads_.q, sizes_.key_heads),
        grad_k_(grads_.k, sizes_.key_heads),
        grad_v_(grads_.v, sizes_.key_heads),
        threads_(threads_for(5 * sizes_.operations())),
        parts_(parts_of(sizes_, threads_)),
        rooms_(rooms_for(sizes_, threads_)),
        sums_(sizes_, parts_ > 1 ? sizes_.pairs * parts_ : threads_) {}

  AttentionGradients run() {
    for_each_item(sizes_.pairs * parts_, threads_, [&](std::int64_t item, int thread) {
      const KeySums sums = sums_.slot(parts_ > 1 ? item : thread);
      add_part(item / parts_, item % parts_, sums, thread);
      if (parts_ == 1) {
        store(item, sums);
      }
    });
    if (parts_ > 1) {
      for_each_item(sizes_.pairs, threads_, [&](std::int64_t pair, int /*thread*/) {
        store(pair, sum_of_parts(pair));
      });
    }
    return grads_;
  }

 private:
  // Every parts-th block of a pair.
  void add_part(std::int64_t pair, std::int64_t part, const KeySums& sums, int thread) {
    std::fill_n(sums.k, sums.size(), 0.0F);
    std::fill_n(sums.v, sums.size(), 0.0F);
    for (std::int64_t index = part; index < sizes_.num_blocks; index += parts_) {
      const Block block = blocks_.block(pair, index);
      BackwardBlock backward(blocks_, block, grad_out_, rooms_, thread);
      backward.add_all(out_, log_sums_ + blocks_.first_row(block), sums);
      backward.finish(grad_q_);
    }
  }

  [[nodiscard]] KeySums sum_of_parts(std::int64_t pair) const {
    const KeySums sums = sums_.slot(pair * parts_);
    for (std::int64_t part = 1; part < parts_; ++part) {
      const KeySums other = sums_.slot(pair * parts_ + part);
      simd::add(sums.k, other.k, sums.size());
      simd::add(sums.v, other.v, sums.size());
    }
    return sums;
  }

  void store(std::int64_t pair, const KeySums& sums) {
    for (const auto& [from, to] : {std::pair(sums.k, &grad_k_), std::pair(sums.v, &grad_v_)}) {
      simd::store_rows(from, sums.keys, sums.head_dim, nullptr, to->rows(pair, 0), sizes_.storage);
    }
  }

  Blocks blocks_;
  const Sizes& sizes_;
  Heads out_, grad_out_;
  const float* log_sums_;
  AttentionGradients grads_;
  Heads grad_q_, grad_k_, grad_v_;
  int threads_;
  std::int64_t parts_;
  Rooms rooms_;
  AllKeySums sums_;
};

}  // namespace

AttentionGradients attention_gradients(const AttentionInputs& inputs,
                                       const AttentionResult& result,
                                       const at::Tensor& grad_out) {
  return Backward(inputs, result, grad_out).run();
}

}  // namespace zeroth::kernels
