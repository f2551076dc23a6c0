#include "base/check.h"
#include "comm/make.h"
#include "comm/process_id.h"
#include "comm/shared_communicator.h"
#include <unistd.h>

namespace zeroth::comm {

std::vector<std::unique_ptr<Communicator>> make_thread_group(int size) {
  ZEROTH_CHECK(size >= 1, "a group of {} ranks", size);
  const std::shared_ptr<Segment> segment = Segment::create_in_process(size);
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (int r = 0; r < size; ++r) {
    RankSlot& slot = segment->slot(r);
    slot.pid = ::getpid();
    slot.start_time = process_start_time(slot.pid);
    slot.state.store(RankState::kJoined);
  }
  for (int r = 0; r < size; ++r) {
    ranks.push_back(std::make_unique<SharedCommunicator>(segment, r, std::vector<int>{}));
  }
  return ranks;
}

}  // namespace zeroth::comm
