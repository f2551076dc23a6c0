#pragma once

#include <memory>
#include <span>
#include <vector>

#include "comm/call_queue.h"
#include "comm/shared_buffer.h"

// The operations between ranks that share a segment. Each object is one started call of one rank;
// it holds the buffers that it works on.
namespace zeroth::comm {

class BarrierOperation : public Operation {
 public:
  bool advance() override { return true; }
};

// Calls small enough to carry every rank's bytes: parts[r] becomes what rank r gave.
class InlineGather : public Operation {
 public:
  // `placement` has a stride; `owner` keeps `full` alive, if that needs it.
  InlineGather(CallQueue& queue,
               std::size_t shard_bytes,
               std::byte* full,
               Placement placement,
               BufferPtr owner = nullptr);
  bool advance() override;

 private:
  CallQueue& queue_;
  std::size_t shard_bytes_;
  std::byte* full_;
  Placement placement_;
  BufferPtr owner_;
};

class InlineReduce : public Operation {
 public:
  InlineReduce(CallQueue& queue, std::span<float> values) : queue_(queue), values_(values) {}

  bool advance() override;

 private:
  CallQueue& queue_;
  std::span<float> values_;
};

class InlineBroadcast : public Operation {
 public:
  InlineBroadcast(CallQueue& queue, std::span<std::byte> bytes, int root)
      : queue_(queue), bytes_(bytes), root_(root) {}

  bool advance() override;

 private:
  CallQueue& queue_;
  std::span<std::byte> bytes_;
  int root_;
};

// Sums straight from the peers' parts.
class ReduceScatter : public Operation {
 public:
  ReduceScatter(std::shared_ptr<SharedBuffer> input,
                std::vector<Span> ranges,
                std::span<float> output,
                bool accumulate,
                NumberType type,
                int rank);
  bool advance() override;

 private:
  std::shared_ptr<SharedBuffer> input_;
  std::vector<Span> ranges_;
  std::span<float> output_;
  bool accumulate_;
  NumberType type_;
  int rank_;
};

// Into a buffer that all ranks see: each writes its own part.
class GatherForAll : public Operation {
 public:
  // `placement` has a stride.
  GatherForAll(std::span<const std::byte> shard,
               std::shared_ptr<SharedBuffer> full,
               Placement placement,
               int rank);
  bool advance() override;

 private:
  std::span<const std::byte> shard_;
  std::shared_ptr<SharedBuffer> full_;
  Placement placement_;
  int rank_;
};

// Transfers out of private memory, piece by piece through every rank's window: in each round each
// rank fills a place of its window, then takes what it wants from all windows.
class RoundsOperation : public Operation {
 public:
  RoundsOperation(CallQueue& queue, std::uint64_t rounds) : queue_(queue), rounds_(rounds) {}

  bool advance() override;

 protected:
  virtual void fill(std::uint64_t round, std::byte* window) = 0;
  virtual void drain(std::uint64_t round) = 0;
  [[nodiscard]] const std::byte* piece_of(int rank, std::uint64_t round) const noexcept;
  [[nodiscard]] static std::uint64_t rounds_for(std::size_t bytes, std::size_t piece) noexcept;

  [[nodiscard]] CallQueue& queue() const noexcept { return queue_; }

 private:
  bool try_fill();
  bool try_drain();

  CallQueue& queue_;
  std::uint64_t rounds_;
  std::uint64_t base_ = 0;  // pieces that earlier operations passed through the windows
  std::uint64_t filled_ = 0;
  std::uint64_t drained_ = 0;
  bool begun_ = false;
};

// Into private memory: straight from the peers' buffers where all shards lie in the segment, else
// through the windows.
class GatherPrivate : public RoundsOperation {
 public:
  // `placement` has a stride.
  GatherPrivate(CallQueue& queue,
                std::span<const std::byte> shard,
                BufferPtr full,
                Placement placement);
  bool advance() override;

 protected:
  void fill(std::uint64_t round, std::byte* window) override;
  void drain(std::uint64_t round) override;

 private:
  [[nodiscard]] bool all_in_segment() const noexcept;
  void copy_directly();

  [[nodiscard]] std::byte* place(int rank) const noexcept;

  std::span<const std::byte> shard_;
  BufferPtr full_;
  Placement placement_;
};

class AllReduce : public RoundsOperation {
 public:
  AllReduce(CallQueue& queue, std::span<float> values);

 protected:
  void fill(std::uint64_t round, std::byte* window) override;
  void drain(std::uint64_t round) override;

 private:
  std::span<float> values_;
};

class Broadcast : public RoundsOperation {
 public:
  Broadcast(CallQueue& queue, std::span<std::byte> bytes, int root);

 protected:
  void fill(std::uint64_t round, std::byte* window) override;
  void drain(std::uint64_t round) override;

 private:
  std::span<std::byte> bytes_;
  int root_;
};

class AllToAll : public RoundsOperation {
 public:
  AllToAll(CallQueue& queue, std::span<const std::byte> input, std::span<std::byte> output);

 protected:
  void fill(std::uint64_t round, std::byte* window) override;
  void drain(std::uint64_t round) override;

 private:
  [[nodiscard]] std::size_t part_bytes() const noexcept;

  std::span<const std::byte> input_;
  std::span<std::byte> output_;
  std::size_t piece_;  // of each part in a round
};

}  // namespace zeroth::comm
