#include "worker/ranks.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "train/communicator.h"
#include "worker/test_stop.h"
#include <fmt/format.h>

namespace zeroth::worker {

std::shared_ptr<comm::Communicator> join_ranks(const config::RunConfig& config,
                                               const RankHooks& hooks) {
  hooks.activity("joining the other ranks");
  std::shared_ptr<comm::Communicator> comm =
      train::make_communicator(config.launch.kind,
                               {.run_name = config.launch.run_name,
                                .rank = static_cast<int>(config.launch.rank),
                                .size = static_cast<int>(config.batch.world_size),
                                .start_timeout_s = config.launch.start_timeout_s},
                               hooks.give_up);
  if (comm->size() != config.batch.world_size) {
    throw Error(
        ErrorKind::kConfig,
        fmt::format("{} ranks have met, but the run is for {}\n  Start it with one launcher alone.",
                    comm->size(),
                    config.batch.world_size));
  }
  log::set_quiet(comm->rank() != 0);
  comm->on_note(
      [activity = hooks.activity, stop = test_stop(comm->rank())](const std::string& text) {
        activity(text);
        if (stop) {
          stop(text);
        }
      });
  return comm;
}

void require_same_rows(comm::Communicator& comm,
                       const std::string& what,
                       const data::Dataset& dataset) {
  constexpr std::uint64_t kHalf = 0xFFFFFFFFU;
  const std::vector<double> mine{static_cast<double>(dataset.examples.size()),
                                 static_cast<double>(dataset.fingerprint >> 32),
                                 static_cast<double>(dataset.fingerprint & kHalf)};
  const std::vector<double> all = comm.gather_values("fingerprint of the " + what + " rows", mine);
  for (std::size_t rank = 1; rank < all.size() / mine.size(); ++rank) {
    const auto theirs = all.begin() + static_cast<std::ptrdiff_t>(rank * mine.size());
    if (!std::equal(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(mine.size()), theirs)) {
      throw Error(
          ErrorKind::kData,
          fmt::format("the ranks have read different {} rows: {:.0f} on rank 0, {:.0f}{} on rank "
                      "{}\n  Every host needs the same files and the same tokenizer.",
                      what,
                      all[0],
                      *theirs,
                      *theirs == all[0] ? " others" : "",
                      rank));
    }
  }
}

}  // namespace zeroth::worker
