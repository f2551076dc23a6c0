#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "comm/communicator.h"

// The arithmetic and the copying of collectives.
namespace zeroth::comm {

// output = sources[0] + sources[1] + ..., added in this order in fp32; with `accumulate` that sum
// is added to what output holds. Large outputs bypass the cache. All sources have output's size and
// hold numbers of `type`.
void sum_in_order(std::span<const std::byte* const> sources,
                  std::span<float> output,
                  bool accumulate,
                  NumberType type = NumberType::kFloat32);

// memcpy that, from kStreamBytes of `total_bytes` on, leaves the cache to others. `total_bytes` is
// the size of the whole transfer that this copy is a piece of.
inline constexpr std::size_t kStreamBytes = std::size_t{1} << 20;
void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes, std::size_t total_bytes);

}  // namespace zeroth::comm
