#include "zero/piece_room.h"

#include <utility>

#include "offload/swap_file.h"

namespace zeroth::zero {

PieceRoom::PieceRoom(std::int64_t elements, std::shared_ptr<memory::Tally> tally)
    : elements_(elements), tally_(std::move(tally)) {
}

memory::FlatBuffer& PieceRoom::of(StatePart part) {
  memory::FlatBuffer& room = parts_.at(static_cast<std::size_t>(part));
  if (room.bytes() == 0) {
    room = memory::FlatBuffer(
        offload::aligned_up(elements_ * static_cast<std::int64_t>(sizeof(float))),
        memory::Purpose::kBuffers,
        tally_);
  }
  return room;
}

}  // namespace zeroth::zero
