#include "comm/host_group.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "comm/meeting_point.h"
#include "comm/process_id.h"
#include <fmt/format.h>
#include <unistd.h>

namespace zeroth::comm {
namespace {

using Clock = std::chrono::steady_clock;

class Deadline {
 public:
  explicit Deadline(double seconds)
      : end_(Clock::now() +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))) {}

  [[nodiscard]] bool is_over() const { return Clock::now() >= end_; }

 private:
  Clock::time_point end_;
};

int world_rank(const HostGroup& group, int rank) {
  return group.world_ranks.empty() ? rank : group.world_ranks[static_cast<std::size_t>(rank)];
}

void sign_in(Segment& segment, int rank) {
  RankSlot& slot = segment.slot(rank);
  slot.pid = ::getpid();
  slot.start_time = process_start_time(slot.pid);
  slot.state.store(RankState::kJoined);
}

bool is_alive(const RankSlot& slot) {
  return process_start_time(slot.pid) == slot.start_time;
}

std::string late_message(const HostGroup& group, const std::string& missing) {
  return fmt::format(
      "{} of {} did not join run {} within {} s\n  See why {} did not start, or give more time "
      "with "
      "--start_timeout.",
      missing,
      group.size,
      group.run_name,
      group.start_timeout_s,
      missing);
}

std::string missing_ranks(const HostGroup& group, const Segment& segment) {
  std::vector<std::string> missing;
  for (int r = 0; r < group.size; ++r) {
    if (segment.slot(r).state.load() == RankState::kAbsent) {
      missing.push_back(std::to_string(world_rank(group, r)));
    }
  }
  return fmt::format("{} {}", missing.size() == 1 ? "rank" : "ranks", join(missing, ", "));
}

bool all_joined(const Segment& segment) {
  for (int r = 0; r < segment.size(); ++r) {
    if (segment.slot(r).state.load() == RankState::kAbsent) {
      return false;
    }
  }
  return true;
}

// Ranks that have joined, or join now, will find the reason why there is no run.
void put_refusal(Segment& segment, const std::string& reason) {
  LongText& text = segment.header().refusal;
  std::copy_n(reason.begin(), std::min(reason.size(), text.size() - 1), text.begin());
  segment.header().start.store(StartState::kRefused);
}

[[noreturn]] void refuse(Segment& segment, const std::string& reason) {
  put_refusal(segment, reason);
  throw Error(ErrorKind::kCommunication, reason);
}

// Why a process cannot be the rank it says it is; empty if it can. Told by those who said hello
// before: one that has the segment may not have signed in yet.
std::string objection(const HostGroup& group,
                      const std::vector<Guest>& guests,
                      const Hello& hello) {
  if (hello.size != group.size) {
    return fmt::format(
        "the ranks of run {} differ in the number of ranks: {} by rank {}, {} by rank {}",
        group.run_name,
        group.size,
        world_rank(group, 0),
        hello.size,
        hello.rank);
  }
  if (hello.rank < 1 || hello.rank >= group.size) {
    return fmt::format("rank {} of {} does not exist", hello.rank, group.size);
  }
  const auto first = std::find_if(guests.begin(), guests.end(), [&](const Guest& guest) {
    return guest.hello.rank == hello.rank;
  });
  return first == guests.end()
             ? ""
             : fmt::format("two processes of run {} have rank {}, one of them with pid {}",
                           group.run_name,
                           world_rank(group, hello.rank),
                           first->pid);
}

void look_for_dead(const HostGroup& group, Segment& segment) {
  for (int r = 0; r < segment.size(); ++r) {
    const RankSlot& slot = segment.slot(r);
    if (slot.state.load() == RankState::kJoined && !is_alive(slot)) {
      refuse(segment,
             fmt::format("rank {} (pid {}) died while the others were starting",
                         world_rank(group, r),
                         slot.pid));
    }
  }
}

std::shared_ptr<Segment> gather_ranks(const HostGroup& group) {
  constexpr int kWaitMilliseconds = 50;
  const Deadline deadline(group.start_timeout_s);
  const std::shared_ptr<Segment> segment = Segment::create_shared(group.size);
  segment->header().size = group.size;
  sign_in(*segment, 0);
  const Descriptor listener = listen_for_ranks(group.run_name);
  std::vector<Guest> guests;  // their connections stay open until all are there
  while (!all_joined(*segment)) {
    if (std::optional<Guest> guest = accept_rank(listener, kWaitMilliseconds)) {
      const std::string reason = objection(group, guests, guest->hello);
      if (!reason.empty()) {
        put_refusal(*segment, reason);
      }
      hand_over(*guest, segment->file());
      if (!reason.empty()) {
        throw Error(ErrorKind::kCommunication, reason);
      }
      guests.push_back(std::move(*guest));
    } else {
      look_for_dead(group, *segment);
    }
    if (deadline.is_over() && !all_joined(*segment)) {
      refuse(*segment, late_message(group, missing_ranks(group, *segment)));
    }
  }
  segment->header().start.store(StartState::kReady);
  return segment;
}

void throw_if_refused(const Segment& segment) {
  if (segment.header().start.load() == StartState::kRefused) {
    throw Error(ErrorKind::kCommunication, segment.header().refusal.data());
  }
}

void wait_for_start(const HostGroup& group, const Segment& segment) {
  constexpr std::chrono::milliseconds kPause(2);
  constexpr int kPausesPerLook = 50;
  for (int i = 0; segment.header().start.load() == StartState::kWaiting; ++i) {
    if (i % kPausesPerLook == 0 && !is_alive(segment.slot(0))) {
      throw Error(ErrorKind::kCommunication,
                  fmt::format("rank {} (pid {}) died while the others were starting",
                              world_rank(group, 0),
                              segment.slot(0).pid));
    }
    std::this_thread::sleep_for(kPause);
  }
  throw_if_refused(segment);
}

std::shared_ptr<Segment> meet_first_rank(const HostGroup& group) {
  constexpr std::chrono::milliseconds kPause(5);
  const Deadline deadline(group.start_timeout_s);
  while (!deadline.is_over()) {
    if (const std::optional<Descriptor> connection = call_first_rank(group.run_name)) {
      std::optional<Descriptor> file =
          introduce(*connection, {.rank = group.rank, .size = group.size});
      if (file) {
        std::shared_ptr<Segment> segment = Segment::open(file->take(), group.size);
        throw_if_refused(*segment);
        sign_in(*segment, group.rank);
        wait_for_start(group, *segment);
        return segment;
      }
    }
    std::this_thread::sleep_for(kPause);
  }
  throw Error(ErrorKind::kCommunication,
              late_message(group, fmt::format("rank {}", world_rank(group, 0))));
}

}  // namespace

std::unique_ptr<SharedCommunicator> join_host_group(const HostGroup& group) {
  ZEROTH_CHECK(group.size >= 1 && group.rank >= 0 && group.rank < group.size,
               "rank {} of {}",
               group.rank,
               group.size);
  std::shared_ptr<Segment> segment = group.rank == 0 ? gather_ranks(group) : meet_first_rank(group);
  auto communicator =
      std::make_unique<SharedCommunicator>(std::move(segment), group.rank, group.world_ranks);
  if (group.size > 1) {
    communicator->take_window();
  }
  return communicator;
}

std::unique_ptr<Communicator> make_host_communicator(const HostGroup& group) {
  return join_host_group(group);
}

}  // namespace zeroth::comm
