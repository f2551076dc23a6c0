#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace zeroth::shard {

// Half-open range of elements in a flat buffer.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  [[nodiscard]] std::int64_t size() const noexcept { return end - begin; }

  friend bool operator==(const Range&, const Range&) = default;
};

[[nodiscard]] Range intersect(Range a,
                              Range b) noexcept;  // empty (begin == end) where they do not meet

// One unit's trainable parameters laid end to end in their fixed order, padded at the end so that
// `num_shards` shards are equal. Every stage uses this layout, which is why all stages can agree
// bit for bit.
class FlatLayout {
 public:
  // `numels`: elements of each parameter, in order; `num_shards` >= 1.
  FlatLayout(std::span<const std::int64_t> numels, std::int64_t num_shards);

  [[nodiscard]] std::int64_t num_shards() const noexcept { return num_shards_; }

  [[nodiscard]] std::int64_t numel() const noexcept { return numel_; }  // without padding

  [[nodiscard]] std::int64_t padded_numel() const noexcept { return shard_numel_ * num_shards_; }

  [[nodiscard]] std::int64_t shard_numel() const noexcept { return shard_numel_; }

  // Where parameter `index` lies in the full buffer.
  [[nodiscard]] Range parameter(std::size_t index) const { return parameters_.at(index); }

  [[nodiscard]] const std::vector<Range>& parameters() const noexcept { return parameters_; }

  // What shard `rank` holds of the full buffer, padding included.
  [[nodiscard]] Range shard(std::int64_t rank) const noexcept;

 private:
  std::int64_t num_shards_;
  std::int64_t numel_ = 0;
  std::int64_t shard_numel_ = 0;
  std::vector<Range> parameters_;
};

}  // namespace zeroth::shard
