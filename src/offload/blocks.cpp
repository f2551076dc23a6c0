#include "offload/blocks.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include <fmt/format.h>

namespace zeroth::offload {

Block Block::after(std::int64_t moved) const noexcept {
  return {file, direction, offset + moved, memory + moved, bytes - moved};
}

std::vector<Block> blocks_of(const Transfer& transfer,
                             Direction direction,
                             std::int64_t block_bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(transfer.memory);
  ZEROTH_CHECK(transfer.offset % kAlignment == 0 && transfer.bytes % kAlignment == 0 &&
                   address % kAlignment == 0,
               "a transfer of {} bytes at {} is not aligned",
               transfer.bytes,
               transfer.offset);
  ZEROTH_CHECK(transfer.offset >= 0 && transfer.offset + transfer.bytes <= transfer.file->bytes(),
               "a transfer of {} bytes at {} leaves a file of {}",
               transfer.bytes,
               transfer.offset,
               transfer.file->bytes());
  const std::int64_t step = std::max(kAlignment, block_bytes / kAlignment * kAlignment);
  std::vector<Block> blocks;
  for (std::int64_t begin = 0; begin < transfer.bytes; begin += step) {
    blocks.push_back({transfer.file,
                      direction,
                      transfer.offset + begin,
                      transfer.memory + begin,
                      std::min(step, transfer.bytes - begin)});
  }
  return blocks;
}

std::string failure_of(const Block& block, std::int64_t result) {
  const bool reads = block.direction == Direction::kRead;
  if (result > 0) {
    return "";
  }
  return fmt::format("cannot {} {} bytes at {} of {}: {}",
                     reads ? "read" : "write",
                     block.bytes,
                     block.offset,
                     block.file->text(),
                     result < 0 ? std::strerror(static_cast<int>(-result))
                     : reads    ? "it ends before that, so it was cut"
                                : "the system took nothing");
}

}  // namespace zeroth::offload
