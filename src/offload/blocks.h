#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "offload/file_io.h"

// What both kinds of I/O have in common: a transfer is cut into requests to the system.
namespace zeroth::offload {

enum class Direction { kRead, kWrite };

struct Block {
  const SwapFile* file = nullptr;
  Direction direction = Direction::kRead;
  std::int64_t offset = 0;
  std::byte* memory = nullptr;
  std::int64_t bytes = 0;

  // What is left after the system moved so many bytes.
  [[nodiscard]] Block after(std::int64_t moved) const noexcept;
};

// kInternal if the transfer is not aligned or leaves its file.
[[nodiscard]] std::vector<Block> blocks_of(const Transfer& transfer,
                                           Direction direction,
                                           std::int64_t block_bytes);

// Why a request failed: `result` is the system's, negative errors included; "" if it moved bytes.
[[nodiscard]] std::string failure_of(const Block& block, std::int64_t result);

}  // namespace zeroth::offload
