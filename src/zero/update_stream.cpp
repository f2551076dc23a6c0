#include "zero/update_stream.h"

#include <algorithm>

namespace zeroth::zero {

UpdateStream::UpdateStream(std::vector<UnitState>& units, const SharedState& shared)
    : units_(units),
      tally_(shared.tally()),
      reads_ahead_(shared.options().resting.reads_ahead),
      writes_behind_(shared.options().resting.writes_behind) {
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    const std::vector<shard::Range> ranges = units_[unit].pieces();
    for (const shard::Range range : ranges) {
      pieces_.push_back({unit, range, range == ranges.back()});
      largest_ = std::max(largest_, range.size());
    }
    passes_ = passes_ || units_[unit].passes_through_memory();
  }
  reads_ahead_ = reads_ahead_ && passes_;
  writes_behind_ = writes_behind_ && passes_;
  make_slots();
}

void UpdateStream::make_slots() {
  slots_.clear();
  const int num_slots = 1 + (reads_ahead_ ? 1 : 0) + (writes_behind_ ? 1 : 0);
  for (int slot = 0; slot < num_slots; ++slot) {
    slots_.push_back({PieceRoom(largest_, tally_), {}});
  }
}

void UpdateStream::run(const optim::Optimizer& optimizer, const optim::UpdateStep& step) {
  for (std::size_t piece = 0; piece < pieces_.size(); ++piece) {
    if (piece == 0 || !reads_ahead_) {
      start_reading(piece);
    }
    wait(slot_of(piece));
    if (reads_ahead_ && piece + 1 < pieces_.size()) {
      start_reading(piece + 1);
    }
    update(piece, optimizer, step);
  }
  for (Slot& slot : slots_) {
    wait(slot);
  }
  if (!passes_) {
    make_slots();  // only what state passes through stays
  }
}

// Into the slot of a piece that is done with, once its state is written.
void UpdateStream::start_reading(std::size_t piece) {
  Slot& slot = slot_of(piece);
  wait(slot);
  const Piece& next = pieces_[piece];
  slot.moving = units_[next.unit].start_reading(next.range, slot.room);
}

void UpdateStream::update(std::size_t piece,
                          const optim::Optimizer& optimizer,
                          const optim::UpdateStep& step) {
  Slot& slot = slot_of(piece);
  const Piece& now = pieces_[piece];
  UnitState& unit = units_[now.unit];
  unit.update(now.range, slot.room, optimizer, step);
  slot.moving = unit.start_writing(now.range, slot.room);
  if (!writes_behind_) {
    wait(slot);
  }
  if (now.last_of_unit) {
    unit.finish_update();
  }
}

void UpdateStream::wait(Slot& slot) {
  for (InFlight& transfer : slot.moving) {
    transfer.wait();
  }
  slot.moving.clear();
}

}  // namespace zeroth::zero
