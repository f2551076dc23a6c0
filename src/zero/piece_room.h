#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "memory/flat_buffer.h"

namespace zeroth::zero {

// What a piece of a unit's state may need memory for while it is updated.
enum class StatePart { kMaster, kFirstMoment, kSecondMoment, kGradients, kWeights, kWideGradients };

// Memory for one piece of the state that rests elsewhere: page-aligned, made when it is first
// needed, kept for the pieces that follow.
class PieceRoom {
 public:
  // `elements`: of the largest piece.
  PieceRoom(std::int64_t elements, std::shared_ptr<memory::Tally> tally);

  // Room for a piece's numbers, of up to four bytes each.
  [[nodiscard]] memory::FlatBuffer& of(StatePart part);

 private:
  std::int64_t elements_;
  std::shared_ptr<memory::Tally> tally_;
  std::array<memory::FlatBuffer, 6> parts_;
};

}  // namespace zeroth::zero
