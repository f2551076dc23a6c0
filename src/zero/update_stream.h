#pragma once

#include <cstdint>
#include <vector>

#include "base/in_flight.h"
#include "optim/optimizer.h"
#include "zero/piece_room.h"
#include "zero/shared_state.h"
#include "zero/unit_state.h"

namespace zeroth::zero {

// Updates all units of a rank, piece after piece: while one piece is updated, the next is read from
// where it rests and the last one is written back.
class UpdateStream {
 public:
  // The units must outlive it.
  UpdateStream(std::vector<UnitState>& units, const SharedState& shared);

  void run(const optim::Optimizer& optimizer, const optim::UpdateStep& step);

 private:
  struct Piece {
    std::size_t unit;
    shard::Range range;
    bool last_of_unit;
  };

  // A place that pieces pass through in turn.
  struct Slot {
    PieceRoom room;
    std::vector<InFlight> moving;  // reads before the update, writes after it
  };

  void start_reading(std::size_t piece);
  void update(std::size_t piece, const optim::Optimizer& optimizer, const optim::UpdateStep& step);
  static void wait(Slot& slot);
  void make_slots();

  [[nodiscard]] Slot& slot_of(std::size_t piece) { return slots_[piece % slots_.size()]; }

  std::vector<UnitState>& units_;
  std::shared_ptr<memory::Tally> tally_;
  std::vector<Piece> pieces_;
  std::int64_t largest_ = 0;  // of the pieces
  bool passes_ = false;       // some state rests on file
  bool reads_ahead_;
  bool writes_behind_;
  std::vector<Slot> slots_;
};

}  // namespace zeroth::zero
