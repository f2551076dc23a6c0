#include "comm/operations.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "comm/sum.h"

namespace zeroth::comm {
namespace {

std::size_t as_size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

// The round's stretch of `bytes`, which pass in pieces of `piece`.
template <typename T>
std::span<T> stretch(std::span<T> bytes, std::uint64_t round, std::size_t piece) {
  const std::size_t begin = std::min(round * piece, bytes.size());
  return bytes.subspan(begin, std::min(piece, bytes.size() - begin));
}

}  // namespace

InlineGather::InlineGather(CallQueue& queue,
                           std::size_t shard_bytes,
                           std::byte* full,
                           Placement placement,
                           BufferPtr owner)
    : queue_(queue),
      shard_bytes_(shard_bytes),
      full_(full),
      placement_(placement),
      owner_(std::move(owner)) {
}

bool InlineGather::advance() {
  for (int r = 0; r < queue_.size(); ++r) {
    const CallRecord& record = queue_.record(r, *this);
    std::copy_n(record.payload.begin(),
                shard_bytes_,
                full_ + as_size(r) * placement_.stride + placement_.offset);
  }
  return true;
}

bool InlineReduce::advance() {
  std::array<float, kInlineBytes / sizeof(float)> values{};
  for (int r = 0; r < queue_.size(); ++r) {
    std::memcpy(values.data(), queue_.record(r, *this).payload.data(), values_.size_bytes());
    for (std::size_t i = 0; i < values_.size(); ++i) {
      values_[i] = r == 0 ? values[i] : values_[i] + values[i];
    }
  }
  return true;
}

bool InlineBroadcast::advance() {
  const CallRecord& record = queue_.record(root_, *this);
  std::copy_n(record.payload.begin(), bytes_.size(), bytes_.begin());
  return true;
}

ReduceScatter::ReduceScatter(std::shared_ptr<SharedBuffer> input,
                             std::vector<Span> ranges,
                             std::span<float> output,
                             bool accumulate,
                             NumberType type,
                             int rank)
    : input_(std::move(input)),
      ranges_(std::move(ranges)),
      output_(output),
      accumulate_(accumulate),
      type_(type),
      rank_(rank) {
  peers_read_mine = true;
}

bool ReduceScatter::advance() {
  const std::size_t begin = as_size(ranges_[as_size(rank_)].begin) * bytes_of(type_);
  std::vector<const std::byte*> sources;
  for (int r = 0; r < static_cast<int>(ranges_.size()); ++r) {
    sources.push_back(input_->part(r) + begin);
  }
  sum_in_order(sources, output_, accumulate_, type_);
  return true;
}

GatherForAll::GatherForAll(std::span<const std::byte> shard,
                           std::shared_ptr<SharedBuffer> full,
                           Placement placement,
                           int rank)
    : shard_(shard), full_(std::move(full)), placement_(placement), rank_(rank) {
  peers_read_mine = true;  // the whole is there once all have written
}

bool GatherForAll::advance() {
  std::byte* part = full_->data() + as_size(rank_) * placement_.stride + placement_.offset;
  copy_bytes(part, shard_.data(), shard_.size(), shard_.size());
  return true;
}

bool RoundsOperation::advance() {
  if (!begun_) {
    base_ = queue_.segment().slot(queue_.rank()).filled.load();
    begun_ = true;
  }
  while (drained_ < rounds_) {
    const bool filled = try_fill();
    if (!try_drain() && !filled) {
      return false;
    }
  }
  return true;
}

bool RoundsOperation::try_fill() {
  // A place is free again when all have drained the piece that lay there.
  if (filled_ == rounds_ ||
      queue_.smallest(&RankSlot::drained) + kWindowPieces <= base_ + filled_) {
    return false;
  }
  queue_.prepare_window();
  fill(filled_, queue_.segment().window(queue_.rank(), base_ + filled_));
  ++filled_;
  queue_.segment().slot(queue_.rank()).filled.store(base_ + filled_);
  queue_.ring_all();
  return true;
}

bool RoundsOperation::try_drain() {
  if (drained_ == filled_ || queue_.smallest(&RankSlot::filled) <= base_ + drained_) {
    return false;
  }
  drain(drained_);
  ++drained_;
  queue_.segment().slot(queue_.rank()).drained.store(base_ + drained_);
  queue_.ring_all();
  return true;
}

const std::byte* RoundsOperation::piece_of(int rank, std::uint64_t round) const noexcept {
  return queue_.segment().window(rank, base_ + round);
}

std::uint64_t RoundsOperation::rounds_for(std::size_t bytes, std::size_t piece) noexcept {
  return (bytes + piece - 1) / piece;
}

GatherPrivate::GatherPrivate(CallQueue& queue,
                             std::span<const std::byte> shard,
                             BufferPtr full,
                             Placement placement)
    : RoundsOperation(queue, rounds_for(shard.size(), Segment::window_bytes())),
      shard_(shard),
      full_(std::move(full)),
      placement_(placement) {
  peers_read_mine = true;
}

std::byte* GatherPrivate::place(int rank) const noexcept {
  return full_->data() + as_size(rank) * placement_.stride + placement_.offset;
}

bool GatherPrivate::advance() {
  if (!all_in_segment()) {
    return RoundsOperation::advance();
  }
  copy_directly();
  return true;
}

bool GatherPrivate::all_in_segment() const noexcept {
  for (int r = 0; r < queue().size(); ++r) {
    if (queue().record(r, *this).source == kPrivateSource) {
      return false;
    }
  }
  return true;
}

void GatherPrivate::copy_directly() {
  for (int r = 0; r < queue().size(); ++r) {
    std::byte* to = place(r);
    if (r == queue().rank()) {
      copy_bytes(to, shard_.data(), shard_.size(), as_size(full_->bytes()));
      continue;
    }
    const std::uint64_t source = queue().record(r, *this).source;
    const Segment::View view = queue().segment().view(source, shard_.size());
    copy_bytes(to, view.data, shard_.size(), as_size(full_->bytes()));
  }
}

void GatherPrivate::fill(std::uint64_t round, std::byte* window) {
  const std::span<const std::byte> piece = stretch(shard_, round, Segment::window_bytes());
  copy_bytes(window, piece.data(), piece.size(), 0);
}

void GatherPrivate::drain(std::uint64_t round) {
  const std::span<const std::byte> own = stretch(shard_, round, Segment::window_bytes());
  const std::size_t begin = round * Segment::window_bytes();
  for (int r = 0; r < queue().size(); ++r) {
    std::byte* to = place(r) + begin;
    const std::byte* from = r == queue().rank() ? own.data() : piece_of(r, round);
    copy_bytes(to, from, own.size(), as_size(full_->bytes()));
  }
}

AllReduce::AllReduce(CallQueue& queue, std::span<float> values)
    : RoundsOperation(queue, rounds_for(values.size_bytes(), Segment::window_bytes())),
      values_(values) {
}

void AllReduce::fill(std::uint64_t round, std::byte* window) {
  const auto piece = stretch(values_, round, Segment::window_bytes() / sizeof(float));
  copy_bytes(window, reinterpret_cast<const std::byte*>(piece.data()), piece.size_bytes(), 0);
}

void AllReduce::drain(std::uint64_t round) {
  std::vector<const std::byte*> sources;
  for (int r = 0; r < queue().size(); ++r) {
    sources.push_back(piece_of(r, round));
  }
  sum_in_order(sources, stretch(values_, round, Segment::window_bytes() / sizeof(float)), false);
}

Broadcast::Broadcast(CallQueue& queue, std::span<std::byte> bytes, int root)
    : RoundsOperation(queue, rounds_for(bytes.size(), Segment::window_bytes())),
      bytes_(bytes),
      root_(root) {
}

void Broadcast::fill(std::uint64_t round, std::byte* window) {
  if (queue().rank() == root_) {
    const auto piece = stretch(bytes_, round, Segment::window_bytes());
    copy_bytes(window, piece.data(), piece.size(), 0);
  }
}

void Broadcast::drain(std::uint64_t round) {
  if (queue().rank() != root_) {
    const auto piece = stretch(bytes_, round, Segment::window_bytes());
    copy_bytes(piece.data(), piece_of(root_, round), piece.size(), bytes_.size());
  }
}

AllToAll::AllToAll(CallQueue& queue, std::span<const std::byte> input, std::span<std::byte> output)
    : RoundsOperation(queue,
                      rounds_for(input.size() / as_size(queue.size()),
                                 Segment::window_bytes() / as_size(queue.size()))),
      input_(input),
      output_(output),
      piece_(Segment::window_bytes() / as_size(queue.size())) {
}

std::size_t AllToAll::part_bytes() const noexcept {
  return input_.size() / as_size(queue().size());
}

void AllToAll::fill(std::uint64_t round, std::byte* window) {
  for (int r = 0; r < queue().size(); ++r) {
    const auto part = input_.subspan(as_size(r) * part_bytes(), part_bytes());
    const auto piece = stretch(part, round, piece_);
    copy_bytes(window + as_size(r) * piece_, piece.data(), piece.size(), 0);
  }
}

void AllToAll::drain(std::uint64_t round) {
  for (int r = 0; r < queue().size(); ++r) {
    const auto part = output_.subspan(as_size(r) * part_bytes(), part_bytes());
    const auto piece = stretch(part, round, piece_);
    const std::byte* from = piece_of(r, round) + as_size(queue().rank()) * piece_;
    copy_bytes(piece.data(), from, piece.size(), output_.size());
  }
}

}  // namespace zeroth::comm
