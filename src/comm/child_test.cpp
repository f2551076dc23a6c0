#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "comm/make.h"
#include "comm/test_processes.h"
#include "comm/test_support.h"
#include <gtest/gtest.h>
#include <unistd.h>

// What this program does when a test has started it as a rank, and main() for both cases.
namespace zeroth::comm {
namespace {

namespace fs = std::filesystem;
using testing::Exercise;
using testing::fingerprint;
using testing::Part;
using testing::read_part;

void write(const Part& part, std::int64_t rank, const std::string& text) {
  write_file_atomically(fs::path(part.folder) / fmt::format("rank-{}", rank), text);
}

void exercise(const Part& part, Communicator& comm) {
  write(part, comm.rank(), fingerprint(Exercise(comm).run()));
}

// All but rank 1 wait in a reduction; rank 1 waits to be killed.
void be_killed(const Part& part, Communicator& comm) {
  std::vector<float> values(1000);
  comm.all_reduce("norms", values).wait();
  comm.note("update 3");
  write(part, comm.rank(), std::to_string(::getpid()));
  if (comm.rank() == 1) {
    std::this_thread::sleep_for(std::chrono::seconds(30));
  }
  comm.barrier("end of update 3");
}

// Never ends by itself.
void work_on(const Part& part, Communicator& comm) {
  const BufferPtr gradients = comm.allocate(std::int64_t{4} << 20);
  const auto numel = static_cast<std::int64_t>(gradients->as<float>().size());
  const std::int64_t part_numel = numel / comm.size();
  std::vector<Span> ranges;
  for (std::int64_t r = 0; r < comm.size(); ++r) {
    ranges.push_back({r * part_numel, (r + 1) * part_numel});
  }
  std::vector<float> shard(static_cast<std::size_t>(part_numel));
  const auto full = make_private_buffer(shard.size() * 4 * ranges.size());
  write(part, comm.rank(), "works");
  while (true) {
    comm.reduce_scatter("gradients", gradients, ranges, shard, false).wait();
    InFlight weights = comm.all_gather("weights", std::as_bytes(std::span(shard)), full);
    (void)comm.gather_values("tokens", std::vector<double>{1.0});
    weights.wait();
  }
}

void differ(const Part& /*part*/, Communicator& comm) {
  std::vector<float> values(comm.rank() == 0 ? 2000 : 3000);
  comm.all_reduce("norms", values).wait();
}

void fail(const Part& /*part*/, Communicator& comm) {
  if (comm.rank() == 1) {
    const std::string reason = "row 17 of train.jsonl is broken";
    comm.abort(reason);
    throw Error(ErrorKind::kData, reason);
  }
  comm.barrier("after reading");
}

void take_too_much(const Part& /*part*/, Communicator& comm) {
  (void)comm.allocate(std::int64_t{1} << 50);
}

void play(const Part& part) {
  const bool by_mpi = part.scenario.starts_with("mpi_");
  const std::unique_ptr<Communicator> comm =
      by_mpi ? make_mpi_communicator(part.start_timeout_s)
             : make_host_communicator({.run_name = part.run_name,
                                       .rank = part.rank,
                                       .size = part.size,
                                       .start_timeout_s = part.start_timeout_s});
  const std::string scenario = by_mpi ? part.scenario.substr(4) : part.scenario;
  if (scenario == "exercise") {
    exercise(part, *comm);
  } else if (scenario == "be_killed") {
    be_killed(part, *comm);
  } else if (scenario == "work_on") {
    work_on(part, *comm);
  } else if (scenario == "differ") {
    differ(part, *comm);
  } else if (scenario == "fail") {
    fail(part, *comm);
  } else if (scenario == "take_too_much") {
    take_too_much(part, *comm);
  }
}

int run_child(const std::string& text) {
  try {
    play(read_part(text));
    return 0;
  } catch (const Error& error) {
    const std::string line = fmt::format("{}\n", error.what());
    return ::write(STDERR_FILENO, line.data(), line.size()) < 0 ? 1 : exit_code(error.kind());
  }
}

}  // namespace
}  // namespace zeroth::comm

int main(int argc, char** argv) {
  if (const char* part = std::getenv(zeroth::comm::testing::kVariable)) {
    return zeroth::comm::run_child(part);
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
