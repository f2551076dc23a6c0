#include "comm/call_queue.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/phases.h"
#include "comm/process_id.h"
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace zeroth::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSpins = 100;                             // a few microseconds
constexpr std::int64_t kLookNanoseconds = 100'000'000;  // how often a sleeper looks for the dead
constexpr std::int64_t kPollNanoseconds = 50'000;       // how often MPI is asked, at first
constexpr std::int64_t kLongestPollNanoseconds = 500'000;

std::uint64_t fnv1a(const std::string& text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  }
  return hash;
}

// Cuts to the room there is; always ends with a zero.
template <std::size_t kSize>
void put_text(std::array<char, kSize>& to, const std::string& text) {
  const std::size_t length = std::min(text.size(), kSize - 1);
  std::memcpy(to.data(), text.data(), length);
  to[length] = '\0';
}

// A peer may have died while it wrote.
template <std::size_t kSize>
std::string get_text(const std::array<char, kSize>& from) {
  return {from.data(), ::strnlen(from.data(), kSize - 1)};
}

void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

class Wait : public InFlight::Work {
 public:
  Wait(std::shared_ptr<CallQueue> queue, std::shared_ptr<Operation> operation)
      : queue_(std::move(queue)), operation_(std::move(operation)) {}

  void wait() override { queue_->wait(*operation_); }

 private:
  std::shared_ptr<CallQueue> queue_;
  std::shared_ptr<Operation> operation_;
};

}  // namespace

std::string Call::text() const {
  return sizes.empty() ? fmt::format("{} '{}'", operation, label)
                       : fmt::format("{} '{}' ({})", operation, label, sizes);
}

CallQueue::CallQueue(std::shared_ptr<Segment> segment, int rank, std::vector<int> world_ranks)
    : segment_(std::move(segment)), rank_(rank), world_ranks_(std::move(world_ranks)) {
}

CallQueue::~CallQueue() {
  RankSlot& mine = segment_->slot(rank_);
  if (broken_) {
    fail(broken_->what());
  } else if (mine.state.load() == RankState::kJoined) {
    mine.state.store(RankState::kLeft);
  }
  ring_all();
}

int CallQueue::world_rank(int rank) const noexcept {
  return world_ranks_.empty() ? rank : world_ranks_[static_cast<std::size_t>(rank)];
}

const CallRecord& CallQueue::record(int rank, const Operation& operation) const noexcept {
  return segment_->slot(rank).calls[operation.sequence_ % kRecords];
}

InFlight CallQueue::start(const Call& call, std::shared_ptr<Operation> operation) {
  return start(call, std::move(operation), Input{});
}

InFlight CallQueue::start(const Call& call, std::shared_ptr<Operation> operation, Input input) {
  throw_if_broken();
  operation->text_ = call.text();
  operation->hash_ = fnv1a(operation->text_);
  if (operation->peer >= 0) {
    direct_.push_back(operation);
    progress();
  } else {
    start_collective(*operation, input);
    collectives_.push_back(operation);
  }
  return InFlight(std::make_unique<Wait>(shared_from_this(), std::move(operation)));
}

void CallQueue::start_collective(Operation& operation, const Input& input) {
  ZEROTH_CHECK(input.payload.size() <= kInlineBytes, "{} bytes in a call", input.payload.size());
  if (next_sequence_ >= kRecords) {
    // The record about to be overwritten must have been read by all.
    wait_until({.finished = next_sequence_ - kRecords + 1, .text = operation.text_});
  }
  operation.sequence_ = next_sequence_++;
  RankSlot& mine = segment_->slot(rank_);
  CallRecord& record = mine.calls[operation.sequence_ % kRecords];
  record.hash = operation.hash_;
  record.source = input.source;
  put_text(record.description, operation.text_);
  std::copy(input.payload.begin(), input.payload.end(), record.payload.begin());
  mine.posted.store(operation.sequence_ + 1);
  ring_all();
}

void CallQueue::wait(const Operation& operation) {
  wait_until({.finished = operation.peers_read_mine ? operation.sequence_ + 1 : 0,
              .executed = &operation,
              .text = operation.text_});
}

bool CallQueue::is_met(const Need& need) const noexcept {
  return (need.executed == nullptr || need.executed->executed_) &&
         (need.finished == 0 || smallest(&RankSlot::finished) >= need.finished);
}

bool CallQueue::needs_rank(const Need& need, int rank) const noexcept {
  const RankSlot& slot = segment_->slot(rank);
  if (need.executed != nullptr && need.executed->peer >= 0) {
    return need.executed->peer == rank;
  }
  const std::uint64_t wanted =
      need.executed == nullptr ? need.finished : need.executed->sequence_ + 1;
  return slot.finished.load() < wanted;
}

void CallQueue::wait_until(const Need& need) {
  const PhaseScope phase(Phase::kCollectives);
  wait_began_ = Clock::now();
  bool look_closely = false;
  for (int idle_rounds = 0;; ++idle_rounds) {
    throw_if_broken();
    const std::uint32_t seen = segment_->slot(rank_).bell.load();
    const bool moved = progress();
    if (is_met(need)) {
      return;
    }
    if (moved) {
      idle_rounds = 0;
      continue;
    }
    if (const std::optional<Error> error = trouble(need, look_closely)) {
      // What the rank did before it went may have come in since.
      progress();
      if (is_met(need)) {
        return;
      }
      broken_ = error;
      follows_ = true;
      throw Error(*error);
    }
    look_closely = sleep(seen, idle_rounds);
  }
}

bool CallQueue::progress() {
  try {
    const bool moved = progress_collectives();
    return progress_direct() || moved;
  } catch (const Error& error) {
    broken_ = error;
    fail(error.what());
    throw;
  }
}

bool CallQueue::progress_collectives() {
  bool moved = false;
  RankSlot& mine = segment_->slot(rank_);
  while (!collectives_.empty()) {
    Operation& operation = *collectives_.front();
    if (!operation.met_) {
      if (smallest(&RankSlot::posted) <= operation.sequence_) {
        break;
      }
      compare(operation);
      operation.met_ = true;
    }
    if (!operation.advance()) {
      break;
    }
    operation.executed_ = true;
    collectives_.pop_front();
    mine.finished.store(operation.sequence_ + 1);
    ring_all();
    moved = true;
  }
  return moved;
}

bool CallQueue::progress_direct() {
  std::set<std::pair<int, int>> busy;  // what shares a channel keeps its order
  bool moved = false;
  for (const std::shared_ptr<Operation>& operation : direct_) {
    const std::pair<int, int> line{operation->peer, operation->channel};
    if (!busy.contains(line)) {
      operation->executed_ = operation->advance();
    }
    moved = moved || operation->executed_;
    if (!operation->executed_) {
      busy.insert(line);
    }
  }
  std::erase_if(direct_, [](const auto& operation) { return operation->executed_; });
  return moved;
}

void CallQueue::compare(const Operation& operation) const {
  const CallRecord& first = record(0, operation);
  for (int r = 1; r < size(); ++r) {
    const CallRecord& other = record(r, operation);
    if (other.hash != first.hash) {
      throw Error(
          ErrorKind::kCommunication,
          fmt::format("ranks differ in operation {}: rank {} called {}, rank {} called {}\n"
                      "  All ranks must call the same operations with the same sizes in the same "
                      "order.",
                      operation.sequence_,
                      world_rank(0),
                      get_text(first.description),
                      world_rank(r),
                      get_text(other.description)));
    }
  }
}

bool CallQueue::anything_polls() const noexcept {
  const auto polls = [](const auto& operation) { return operation->polls; };
  return (!collectives_.empty() && collectives_.front()->polls && collectives_.front()->met_) ||
         std::any_of(direct_.begin(), direct_.end(), polls);
}

// True if it is time to look whether the peers live.
bool CallQueue::sleep(std::uint32_t seen, int idle_rounds) const noexcept {
  RankSlot& mine = segment_->slot(rank_);
  for (int i = 0; i < kSpins; ++i) {
    if (mine.bell.load(std::memory_order_relaxed) != seen) {
      return false;
    }
    pause_briefly();
  }
  const bool polls = anything_polls();
  const std::int64_t poll =
      std::min(kPollNanoseconds * (1 + idle_rounds / 8), kLongestPollNanoseconds);
  const timespec timeout{.tv_sec = 0, .tv_nsec = polls ? poll : kLookNanoseconds};
  mine.sleeping.store(1);
  const long woken = ::syscall(SYS_futex, &mine.bell, FUTEX_WAIT, seen, &timeout, nullptr, 0);
  const bool timed_out = woken != 0 && errno == ETIMEDOUT;
  mine.sleeping.store(0);
  constexpr int kPollsPerLook = 500;
  return timed_out && (!polls || idle_rounds % kPollsPerLook == kPollsPerLook - 1);
}

void CallQueue::prepare_window() {
  if (!window_is_ready_) {
    segment_->commit_window(rank_);
    window_is_ready_ = true;
  }
}

void CallQueue::ring(int rank) const noexcept {
  RankSlot& slot = segment_->slot(rank);
  slot.bell.fetch_add(1);
  if (slot.sleeping.load() != 0) {
    ::syscall(SYS_futex, &slot.bell, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }
}

void CallQueue::ring_all() const noexcept {
  for (int r = 0; r < size(); ++r) {
    if (r != rank_) {
      ring(r);
    }
  }
}

std::string CallQueue::name(int rank) const {
  return fmt::format("rank {} (pid {})", world_rank(rank), segment_->slot(rank).pid);
}

std::string CallQueue::where(int rank) const {
  const RankSlot& slot = segment_->slot(rank);
  const std::uint64_t posted = slot.posted.load();
  const std::string activity = get_text(slot.activity);
  const std::string busy = activity.empty() ? "" : fmt::format(", busy with {}", activity);
  if (posted == 0) {
    return "before its first operation" + busy;
  }
  const CallRecord& last = slot.calls[(posted - 1) % kRecords];
  return fmt::format("{} operation {}, {}{}",
                     slot.finished.load() < posted ? "in" : "after",
                     posted - 1,
                     get_text(last.description),
                     busy);
}

std::optional<Error> CallQueue::trouble(const Need& need, bool look_closely) const {
  const auto error = [&](int r, const std::string& what) {
    const double seconds = std::chrono::duration<double>(Clock::now() - wait_began_).count();
    return Error(ErrorKind::kCommunication,
                 fmt::format("{} {}\n  Rank {} waited for it for {:.1f} s in {}.",
                             name(r),
                             what,
                             world_rank(rank_),
                             seconds,
                             need.text));
  };
  // The dead first: a rank that failed may have failed for want of one of them.
  for (int r = 0; r < size() && look_closely; ++r) {
    const RankSlot& slot = segment_->slot(r);
    if (slot.state.load() == RankState::kJoined &&
        process_start_time(slot.pid) != slot.start_time) {
      return error(r, fmt::format("is gone: its process died {}", where(r)));
    }
  }
  for (const RankState state : {RankState::kFailed, RankState::kFollowed}) {
    if (const std::optional<int> r = peer_in(state)) {
      return look_closely
                 ? error(*r,
                         fmt::format(
                             "failed {}: {}", where(*r), get_text(segment_->slot(*r).failure)))
                 : trouble(need, true);
    }
  }
  for (int r = 0; r < size(); ++r) {
    if (r != rank_ && segment_->slot(r).state.load() == RankState::kLeft && needs_rank(need, r)) {
      return error(r, fmt::format("has ended {}", where(r)));
    }
  }
  return std::nullopt;
}

std::optional<int> CallQueue::peer_in(RankState state) const noexcept {
  for (int r = 0; r < size(); ++r) {
    if (r != rank_ && segment_->slot(r).state.load() == state) {
      return r;
    }
  }
  return std::nullopt;
}

void CallQueue::note(const std::string& activity) noexcept {
  put_text(segment_->slot(rank_).activity, activity);
}

void CallQueue::fail(const std::string& reason) noexcept {
  RankSlot& mine = segment_->slot(rank_);
  if (mine.state.load() == RankState::kJoined) {
    put_text(mine.failure, reason);
    mine.state.store(follows_ ? RankState::kFollowed : RankState::kFailed);
    ring_all();
  }
}

void CallQueue::abort(const std::string& reason) noexcept {
  fail(reason);
  if (!broken_) {
    broken_ = Error(ErrorKind::kCommunication, "this rank has failed: " + reason);
  }
}

void CallQueue::throw_if_broken() const {
  if (broken_) {
    throw Error(*broken_);
  }
}

}  // namespace zeroth::comm
