// How fast are the collectives of one host beside MPI's own? Both in one program, in turns, so that
// what else the machine does hits both.
//
//   mpirun -n 2 --bind-to none build/release/bench/zeroth_bench_collectives [megabytes] [rounds]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/make.h"
#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

namespace zeroth::comm {
namespace {

struct Place {
  int rank = 0;
  int size = 1;
};

Place place_in_world() {
  Place place;
  MPI_Comm_rank(MPI_COMM_WORLD, &place.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &place.size);
  return place;
}

std::unique_ptr<Communicator> join(const Place& place) {
  int pid = ::getpid();
  MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return make_host_communicator({.run_name = fmt::format("bench-{}", pid),
                                 .rank = place.rank,
                                 .size = place.size,
                                 .start_timeout_s = 20});
}

// Milliseconds of the slowest rank.
double timed(const std::function<void()>& work) {
  MPI_Barrier(MPI_COMM_WORLD);
  const auto began = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double, std::milli> own = std::chrono::steady_clock::now() - began;
  const double mine = own.count();
  double slowest = 0;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

struct Spread {
  double median = 0;
  double lower = 0;  // quartiles
  double upper = 0;
  double best = 0;
};

Spread spread_of(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const std::size_t last = times.size() - 1;
  return {times[last / 2], times[last / 4], times[last * 3 / 4], times.front()};
}

class Bench {
 public:
  Bench(const Place& place, Communicator& comm, std::size_t bytes)
      : place_(place),
        comm_(comm),
        shard_floats_(bytes / sizeof(float) / static_cast<std::size_t>(place.size)),
        gradients_(comm.allocate(whole_bytes())),
        mpi_gradients_(shard_floats_ * static_cast<std::size_t>(place.size)),
        reduced_(shard_floats_),
        mpi_reduced_(shard_floats_),
        shard_(shard_floats_, 1.0F),
        shared_full_(comm.allocate_shared(whole_bytes())),
        private_full_(make_private_buffer(static_cast<std::size_t>(whole_bytes()))),
        mpi_full_(mpi_gradients_.size()) {
    for (int r = 0; r < place.size; ++r) {
      const auto begin = static_cast<std::int64_t>(shard_floats_) * r;
      ranges_.push_back({begin, begin + static_cast<std::int64_t>(shard_floats_)});
    }
  }

  void round() {
    produce(gradients_->as<float>());
    note("reduce_scatter host", timed([&] {
           comm_.reduce_scatter("gradients", gradients_, ranges_, reduced_, false).wait();
         }));
    produce(mpi_gradients_);
    note("reduce_scatter MPI", timed([&] {
           const std::vector<int> counts(static_cast<std::size_t>(place_.size), shard_count());
           MPI_Reduce_scatter(mpi_gradients_.data(),
                              mpi_reduced_.data(),
                              counts.data(),
                              MPI_FLOAT,
                              MPI_SUM,
                              MPI_COMM_WORLD);
         }));
    produce(shard_);
    note("all_gather host, shared", timed([&] { gather(shared_full_); }));
    produce(shard_);
    note("all_gather host, private", timed([&] { gather(private_full_); }));
    produce(shard_);
    note("all_gather MPI", timed([&] {
           MPI_Allgather(shard_.data(),
                         shard_count(),
                         MPI_FLOAT,
                         mpi_full_.data(),
                         shard_count(),
                         MPI_FLOAT,
                         MPI_COMM_WORLD);
         }));
    ++step_;
  }

  void forget() { times_.clear(); }

  [[nodiscard]] bool results_agree() const {
    const std::size_t bytes = mpi_full_.size() * sizeof(float);
    return reduced_ == mpi_reduced_ &&
           std::equal(private_full_->data(), private_full_->data() + bytes, shared_full_->data()) &&
           std::equal(mpi_full_.begin(), mpi_full_.end(), private_full_->as<float>().begin());
  }

  void print() const {
    for (const auto& [name, times] : times_) {
      const Spread spread = spread_of(times);
      fmt::print("{:<26} median {:7.2f} ms   quartiles {:7.2f} to {:7.2f}   best {:7.2f}\n",
                 name,
                 spread.median,
                 spread.lower,
                 spread.upper,
                 spread.best);
    }
    print_ratio("reduce_scatter MPI", "reduce_scatter host", 5);
    print_ratio("all_gather MPI", "all_gather host, shared", 2.5);
    print_ratio("all_gather MPI", "all_gather host, private", 1.2);
  }

 private:
  [[nodiscard]] std::int64_t whole_bytes() const {
    return static_cast<std::int64_t>(shard_floats_ * sizeof(float)) * place_.size;
  }

  [[nodiscard]] int shard_count() const { return static_cast<int>(shard_floats_); }

  void produce(std::span<float> values) const {
    const float base = static_cast<float>(place_.rank + step_ + 1);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = base + static_cast<float>(i % 1024) * 0.125F;
    }
  }

  void gather(const BufferPtr& full) {
    comm_.all_gather("weights", std::as_bytes(std::span(shard_)), full).wait();
  }

  void note(const std::string& name, double milliseconds) { times_[name].push_back(milliseconds); }

  void print_ratio(const std::string& slow, const std::string& fast, double wanted) const {
    const double ratio = spread_of(times_.at(slow)).median / spread_of(times_.at(fast)).median;
    fmt::print("{} / {}: {:.2f} x (wanted {} x)\n", slow, fast, ratio, wanted);
  }

  Place place_;
  Communicator& comm_;
  std::size_t shard_floats_;
  BufferPtr gradients_;
  std::vector<float> mpi_gradients_;
  std::vector<float> reduced_;
  std::vector<float> mpi_reduced_;
  std::vector<float> shard_;
  BufferPtr shared_full_;
  BufferPtr private_full_;
  std::vector<float> mpi_full_;
  std::vector<Span> ranges_;
  std::map<std::string, std::vector<double>> times_;
  int step_ = 0;
};

int run(std::size_t megabytes, int rounds) {
  const Place place = place_in_world();
  const std::unique_ptr<Communicator> comm = join(place);
  Bench bench(place, *comm, megabytes << 20);
  bench.round();  // touches all memory
  bench.forget();
  for (int i = 0; i < rounds; ++i) {
    bench.round();
  }
  const bool agree = bench.results_agree();
  if (place.rank == 0) {
    fmt::print("{} MB between {} ranks, {} rounds in turns; results {}\n",
               megabytes,
               place.size,
               rounds,
               agree ? "agree" : "DIFFER");
    bench.print();
  }
  return agree ? 0 : 1;
}

}  // namespace
}  // namespace zeroth::comm

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long megabytes = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 128;
  const long rounds = argc > 2 ? std::strtol(argv[2], nullptr, 10) : 15;
  int code = 2;
  if (megabytes < 1 || megabytes > 4096 || rounds < 1) {
    std::fputs("usage: zeroth_bench_collectives [megabytes 1..4096] [rounds]\n", stderr);
  } else {
    code = zeroth::comm::run(static_cast<std::size_t>(megabytes), static_cast<int>(rounds));
  }
  MPI_Finalize();
  return code;
}
