#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plan/input.h"

// A model as the numbers that memory and traffic follow from.
namespace zeroth::plan {

// The linears of a block, in the order of its arithmetic.
enum class BlockLinear { kQuery, kKey, kValue, kOutput, kGate, kUp, kDown, kCount };

inline constexpr auto kNumBlockLinears = static_cast<std::size_t>(BlockLinear::kCount);

struct UnitSize {
  std::int64_t trainable = 0;                    // elements that train
  std::int64_t padded = 0;                       // the same as the ranks cut it (shard::FlatLayout)
  std::int64_t frozen = 0;                       // elements that do not train
  std::int64_t largest_trainable = 0;            // of its parameters
  std::int64_t borrowed_padded = 0;              // of units whose parameters it reads as well
  std::array<bool, kNumBlockLinears> adapted{};  // blocks: which linears have an adapter
  std::array<bool, kNumBlockLinears> trained{};  // blocks: whose weight trains
  std::int64_t ranks = 0;                        // of its adapters, added up
  std::int64_t dora_outputs = 0;                 // of its linears with a magnitude, added up
  bool head_trains = false;                      // the head: its matrix, own or borrowed

  [[nodiscard]] bool trains_whole() const noexcept { return frozen == 0 && trainable > 0; }
};

struct ModelSize {
  std::vector<UnitSize> units;  // embedding, blocks, head

  std::int64_t trainable = 0;  // over all units
  std::int64_t frozen = 0;
  std::int64_t padded = 0;
  std::int64_t shard = 0;           // one rank's part of `padded`
  std::int64_t largest_padded = 0;  // of the units
  std::int64_t largest_unit = 0;    // of the units: padded and frozen together
  bool borrows = false;             // some unit reads another's trainable parameters

  // Of frozen factors, as they are packed: filled up to whole blocks.
  std::int64_t packed_forward = 0;
  std::int64_t packed_backward = 0;
  std::int64_t packed_alone = 0;  // elements that nothing reads plain once both are there
};

// Padded for the ranks of `input`.
[[nodiscard]] ModelSize size_of(const PlanInput& input);

// kConfig where nothing trains: there would be nothing to update. size_of() asks it.
void require_trainable(const ModelSize& model);

}  // namespace zeroth::plan
