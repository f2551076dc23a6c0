#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace zeroth::shard {

// What of one unit's state rests on file.
struct OnFile {
  bool optimizer = false;  // master weights and moments
  bool gradients = false;
  bool parameters = false;  // weights that compute

  [[nodiscard]] bool any() const noexcept { return optimizer || gradients || parameters; }

  friend bool operator==(const OnFile&, const OnFile&) = default;
};

// Which state rests on file, and what of it stays in memory all the same.
struct FileRule {
  bool optimizer = false;
  bool gradients = false;  // of units whose optimizer state rests there
  bool parameters = false;
  double optimizer_share = 1;              // of the elements; the first units keep the rest
  std::int64_t parameters_kept = 0;        // elements over all ranks, of the first units
  std::int64_t persistent_parameters = 0;  // units up to this size keep their weights
};

// Of each unit, the same on every rank. `numels`: their elements, padded, in order.
[[nodiscard]] std::vector<OnFile> on_file(const FileRule& rule,
                                          std::span<const std::int64_t> numels);

// Pieces of state on file begin at multiples of this many elements, and so at pages, whatever the
// elements' width.
inline constexpr std::int64_t kPieceElements = 2048;

// Elements of the largest piece of `held` elements that an update works on at one time. `asked`: at
// most, 0: all. What passes through memory does so in pages, and no more at one time than keeps a
// disk busy.
[[nodiscard]] std::int64_t piece_elements(std::int64_t held, std::int64_t asked, bool passes);

}  // namespace zeroth::shard
