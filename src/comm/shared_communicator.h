#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/call_queue.h"
#include "comm/communicator.h"
#include "comm/shared_buffer.h"

namespace zeroth::comm {

// Ranks that share a segment: processes of one host, or threads of one process.
class SharedCommunicator : public Communicator {
 public:
  // `rank` has joined the segment. world_ranks: how messages name the ranks; may be empty.
  SharedCommunicator(std::shared_ptr<Segment> segment, int rank, std::vector<int> world_ranks);

  [[nodiscard]] std::int64_t rank() const noexcept override { return queue_->rank(); }

  [[nodiscard]] std::int64_t size() const noexcept override { return queue_->size(); }

  [[nodiscard]] BufferPtr allocate(std::int64_t bytes) override;
  [[nodiscard]] BufferPtr allocate_shared(std::int64_t bytes) override;
  [[nodiscard]] InFlight reduce_scatter(const std::string& label,
                                        BufferPtr input,
                                        std::vector<Span> ranges,
                                        std::span<float> output,
                                        bool accumulate,
                                        NumberType type = NumberType::kFloat32) override;
  [[nodiscard]] InFlight all_gather(const std::string& label,
                                    std::span<const std::byte> shard,
                                    BufferPtr full,
                                    Placement placement = {}) override;
  [[nodiscard]] InFlight all_reduce(const std::string& label, std::span<float> values) override;
  [[nodiscard]] InFlight broadcast(const std::string& label,
                                   std::span<std::byte> bytes,
                                   std::int64_t root) override;
  [[nodiscard]] InFlight send(const std::string& label,
                              std::span<const std::byte> bytes,
                              std::int64_t to) override;
  [[nodiscard]] InFlight recv(const std::string& label,
                              std::span<std::byte> bytes,
                              std::int64_t from) override;
  [[nodiscard]] InFlight all_to_all(const std::string& label,
                                    std::span<const std::byte> input,
                                    std::span<std::byte> output) override;
  void barrier(const std::string& label) override;
  void abort(const std::string& reason) noexcept override;

  // Collective. Takes the memory through which ranks show each other what lies in memory of their
  // own, which would otherwise be taken at the first need: a run that gets none is told at its
  // start and not when it saves its result.
  void take_window();

  // For communicators that add ranks of other hosts.
  [[nodiscard]] const std::shared_ptr<CallQueue>& queue() const noexcept { return queue_; }

  // The buffer as one of this communicator's own, or null.
  [[nodiscard]] std::shared_ptr<SharedBuffer> own(const BufferPtr& buffer) const noexcept;

 protected:
  void tell_activity(const std::string& activity) noexcept override;

 private:
  [[nodiscard]] BufferPtr allocate(const Call& call, SharedBuffer::Shape shape);
  // What each rank found out alone, told to all: empty, or the first rank's failure.
  void agree(const Call& call, const std::string& failure);

  std::shared_ptr<Segment> segment_;
  std::shared_ptr<CallQueue> queue_;
  std::uint64_t next_number_ = 0;
  std::uint64_t next_offset_;  // of the next buffer: the same on all ranks
};

// How ranges are told to peers: their number, sum and a fingerprint of their borders.
[[nodiscard]] std::string describe_ranges(const std::vector<Span>& ranges, NumberType type);
void check_ranges(const std::vector<Span>& ranges,
                  const Buffer& input,
                  std::span<const float> output,
                  NumberType type,
                  std::int64_t rank,
                  std::int64_t size);
// The placement with its stride written out; all shards must lie inside `full`.
[[nodiscard]] Placement checked_placement(Placement placement,
                                          std::size_t shard_bytes,
                                          const Buffer& full,
                                          std::int64_t size);
// How a gather is told to peers.
[[nodiscard]] std::string describe_gather(std::size_t shard_bytes, const Placement& placement);

}  // namespace zeroth::comm
