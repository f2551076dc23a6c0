#include "data/sampler.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/random.h"

namespace zeroth::data {
namespace {

// Keeps shuffles apart from every other use of the seed; the epoch is added to it.
constexpr std::uint64_t kShufflePurpose = 0x73687566'00000000U;

}  // namespace

Sampler::Sampler(std::int64_t num_rows,
                 std::int64_t global_batch_rows,
                 std::uint64_t seed,
                 bool shuffle,
                 const SamplerStart& start)
    : num_rows_(num_rows),
      global_batch_rows_(global_batch_rows),
      seed_(seed),
      shuffle_(shuffle),
      start_(start) {
  ZEROTH_CHECK(num_rows >= 1, "a sampler needs rows, got {}", num_rows);
  ZEROTH_CHECK(global_batch_rows >= 1, "a global batch needs rows, got {}", global_batch_rows);
  if (start_.at.row >= num_rows_) {
    start_.at = {.epoch = start_.at.epoch + 1, .row = 0};
  }
}

RowPosition Sampler::position_of(std::int64_t update) const {
  ZEROTH_CHECK(update >= start_.update, "update {} is before {}", update, start_.update);
  const std::int64_t left = num_rows_ - start_.at.row;
  const std::int64_t in_first_epoch = (left + global_batch_rows_ - 1) / global_batch_rows_;
  const std::int64_t further = update - start_.update;
  if (further < in_first_epoch) {
    return {.epoch = start_.at.epoch, .row = start_.at.row + further * global_batch_rows_};
  }
  const std::int64_t later = further - in_first_epoch;
  return {.epoch = start_.at.epoch + 1 + later / updates_per_epoch(),
          .row = later % updates_per_epoch() * global_batch_rows_};
}

std::int64_t Sampler::updates_per_epoch() const noexcept {
  return num_rows_ / global_batch_rows_ + (num_rows_ % global_batch_rows_ == 0 ? 0 : 1);
}

std::vector<std::int64_t> Sampler::global_batch(std::int64_t update) {
  const RowPosition position = position_of(update);
  shuffle_epoch(position.epoch);
  const std::int64_t begin = position.row;
  const std::int64_t end = begin + std::min(global_batch_rows_, num_rows_ - begin);
  return {order_.begin() + begin, order_.begin() + end};
}

// Starts from the file order each time: an epoch's order must not depend on which epochs were asked
// for before.
void Sampler::shuffle_epoch(std::int64_t epoch) {
  if (epoch == epoch_) {
    return;
  }
  order_.resize(static_cast<std::size_t>(num_rows_));
  std::iota(order_.begin(), order_.end(), 0);
  epoch_ = epoch;
  if (!shuffle_) {
    return;
  }
  RandomStream random(seed_, kShufflePurpose + static_cast<std::uint64_t>(epoch));
  for (std::size_t left = order_.size(); left > 1; --left) {
    std::swap(order_[left - 1], order_[random.below(left)]);
  }
}

}  // namespace zeroth::data
