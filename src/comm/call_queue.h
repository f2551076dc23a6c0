#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "comm/communicator.h"
#include "comm/segment.h"

// The calls of one rank: each is posted to the peers when it starts, compared with theirs, and
// carried on whenever this rank waits. See [Note: how ranks wait].
namespace zeroth::comm {

// What a rank calls; ranks must agree in all of it.
struct Call {
  std::string operation;
  std::string label;
  std::string sizes;

  [[nodiscard]] std::string text() const;
};

class Operation {
 public:
  virtual ~Operation() = default;
  // Does what can be done without waiting; true once this rank's part is finished. For a collective
  // it is called after all ranks have posted, and after all earlier collectives have finished here.
  virtual bool advance() = 0;

  // Whether wait() must also see that the peers have finished, since they read this rank's memory.
  bool peers_read_mine = false;
  // Whether things happen without a bell (in MPI).
  bool polls = false;
  // Point to point: the other rank and an order among those that share a channel. -1: a collective.
  int peer = -1;
  int channel = 0;

 private:
  friend class CallQueue;
  std::string text_;
  std::uint64_t hash_ = 0;
  std::uint64_t sequence_ = 0;
  bool met_ = false;  // all ranks have posted the same call
  bool executed_ = false;
};

class CallQueue : public std::enable_shared_from_this<CallQueue> {
 public:
  // world_ranks: how messages name the ranks. The slot of `rank` says kJoined.
  CallQueue(std::shared_ptr<Segment> segment, int rank, std::vector<int> world_ranks);
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;
  ~CallQueue();

  struct Input {
    std::span<const std::byte> payload;     // carried by the call itself
    std::uint64_t source = kPrivateSource;  // where the input lies in the segment
  };

  [[nodiscard]] InFlight start(const Call& call, std::shared_ptr<Operation> operation, Input input);
  [[nodiscard]] InFlight start(const Call& call, std::shared_ptr<Operation> operation);
  void wait(const Operation& operation);
  // What `rank` gave to the collective that is being advanced.
  [[nodiscard]] const CallRecord& record(int rank, const Operation& operation) const noexcept;

  [[nodiscard]] Segment& segment() const noexcept { return *segment_; }

  [[nodiscard]] int rank() const noexcept { return rank_; }

  [[nodiscard]] int size() const noexcept { return segment_->size(); }

  [[nodiscard]] int world_rank(int rank) const noexcept;

  [[nodiscard]] bool broken() const noexcept { return broken_.has_value(); }

  void prepare_window();  // before this rank's window is written
  void ring(int rank) const noexcept;
  void ring_all() const noexcept;
  void note(const std::string& activity) noexcept;
  void abort(const std::string& reason) noexcept;

  // The smallest value of a counter over all ranks.
  template <typename Counter>
  [[nodiscard]] std::uint64_t smallest(Counter counter) const noexcept {
    std::uint64_t least = ~std::uint64_t{0};
    for (int r = 0; r < size(); ++r) {
      least = std::min(least, (segment_->slot(r).*counter).load());
    }
    return least;
  }

 private:
  // What must come true before this rank goes on.
  struct Need {
    std::uint64_t posted = 0;    // by all
    std::uint64_t finished = 0;  // by all
    const Operation* executed = nullptr;
    std::string text;
  };

  void start_collective(Operation& operation, const Input& input);
  [[nodiscard]] bool is_met(const Need& need) const noexcept;
  [[nodiscard]] bool needs_rank(const Need& need, int rank) const noexcept;
  void wait_until(const Need& need);
  bool progress();
  bool progress_collectives();
  bool progress_direct();
  void compare(const Operation& operation) const;
  bool sleep(std::uint32_t seen, int idle_rounds) const noexcept;
  [[nodiscard]] bool anything_polls() const noexcept;
  // Why this rank waits in vain, if it does; `look_closely` also asks the kernel.
  [[nodiscard]] std::optional<Error> trouble(const Need& need, bool look_closely) const;
  [[nodiscard]] std::optional<int> peer_in(RankState state) const noexcept;
  [[nodiscard]] std::string where(int rank) const;
  [[nodiscard]] std::string name(int rank) const;
  void fail(const std::string& reason) noexcept;
  void throw_if_broken() const;

  std::shared_ptr<Segment> segment_;
  int rank_;
  std::vector<int> world_ranks_;
  std::uint64_t next_sequence_ = 0;
  std::deque<std::shared_ptr<Operation>> collectives_;  // not finished here
  std::deque<std::shared_ptr<Operation>> direct_;       // point to point, not finished here
  bool window_is_ready_ = false;
  std::optional<Error> broken_;
  bool follows_ = false;  // broken because a peer is
  std::chrono::steady_clock::time_point wait_began_;
};

}  // namespace zeroth::comm
