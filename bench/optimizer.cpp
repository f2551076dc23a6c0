// How near AdamW's pass over a flat shard comes to the speed of memory: bytes a second, against
// several plain copies in the same process, round by round. The gradients' norm and what a separate
// cast to bf16 would cost are beside it.
//   zeroth_bench_optimizer [millions of parameters] [rounds]; OMP_NUM_THREADS=2
//
// Bytes are those that a program reads and writes: a copy counts each of its own twice. AdamW reads
// the gradient, the master and two moments and writes the master and both moments, 28 bytes an
// element, and 2 more where it stores the bf16 weights. What a processor reads before it writes is
// not counted: nothing for AdamW's own, whose lines are there, but the target of a plain copy,
// which is why the copies past the caches are here.
#include "optim/optimizer.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/timing.h"
#include "optim/norm.h"
#include <fmt/core.h>
#include <immintrin.h>
#include <omp.h>
#include <sys/mman.h>

namespace {

using namespace zeroth;

struct Candidate {
  std::string name;
  double bytes = 0;
  bool is_copy = false;
  std::function<void()> run;
  std::vector<double> rates{};  // GB/s, one a round
};

// An array on huge pages, as the engine's are.
class Floats {
 public:
  Floats(std::size_t count, float value)
      : count_(count),
        data_(static_cast<float*>(
                  std::aligned_alloc(kPage, (count * sizeof(float) + kPage - 1) / kPage * kPage)),
              &std::free) {
    ::madvise(data_.get(), count * sizeof(float), MADV_HUGEPAGE);
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < count; ++i) {
      data_.get()[i] = value;
    }
  }

  [[nodiscard]] float* data() const {
    return data_.get();
  }

  [[nodiscard]] std::span<float> span() const {
    return {data_.get(), count_};
  }

 private:
  static constexpr std::size_t kPage = 2 << 20;
  std::size_t count_;
  std::unique_ptr<float, decltype(&std::free)> data_;
};

// Calls copy(to, from, count) for each thread's part, of whole lines.
template <typename Copy>
void copy_on_threads(float* to, const float* from, std::size_t count, const Copy& copy) {
#pragma omp parallel
  {
    const auto threads = static_cast<std::size_t>(omp_get_num_threads());
    const std::size_t part = count / threads / 16 * 16;
    const std::size_t begin = part * static_cast<std::size_t>(omp_get_thread_num());
    copy(to + begin, from + begin, part);
  }
}

void copy_plain(float* to, const float* from, std::size_t count) {
  std::memcpy(to, from, count * sizeof(float));
}

void copy_in_vectors(float* to, const float* from, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 4) {
    _mm_store_ps(to + i, _mm_load_ps(from + i));
  }
}

void copy_past_caches(float* to, const float* from, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 16) {
    for (std::size_t lane = 0; lane < 16; lane += 4) {
      _mm_stream_ps(to + i + lane, _mm_load_ps(from + i + lane));
    }
  }
  _mm_sfence();
}

// The arrays of AdamW, read and written as it does, with next to no arithmetic.
void add_in_place(const optim::ShardView& shard) {
  float* const w = shard.master.data();
  const float* const g = shard.gradients.data();
  float* const m = shard.moments[0].data();
  float* const v = shard.moments[1].data();
#pragma omp parallel for simd schedule(static)
  for (std::size_t i = 0; i < shard.master.size(); ++i) {
    m[i] += g[i];
    v[i] += m[i];
    w[i] += v[i];
  }
}

void run_round(std::vector<Candidate>& candidates, bool counts) {
  for (Candidate& candidate : candidates) {
    const Clock::time_point begin = Clock::now();
    candidate.run();
    if (counts) {
      candidate.rates.push_back(1e-9 * candidate.bytes / seconds_since(begin));
    }
  }
}

void report(const std::vector<Candidate>& candidates) {
  double best_copy = 0;
  for (const Candidate& candidate : candidates) {
    if (candidate.is_copy) {
      best_copy = std::max(best_copy, median(candidate.rates));
    }
  }
  fmt::print("{:28} {:>8} {:>8} {:>8} {:>9}\n", "GB/s", "median", "least", "most", "of copy");
  for (const Candidate& candidate : candidates) {
    const auto [least, most] = std::minmax_element(candidate.rates.begin(), candidate.rates.end());
    fmt::print("{:28} {:8.2f} {:8.2f} {:8.2f} {:9.3f}\n",
               candidate.name,
               median(candidate.rates),
               *least,
               *most,
               median(candidate.rates) / best_copy);
  }
}

void measure(std::size_t count, int rounds) {
  const Floats master(count, 0.1F);
  const Floats gradients(count, 0.01F);
  const Floats first(count, 0);
  const Floats second(count, 0);
  const Floats narrow(count / 2 + 1, 0);
  const std::vector<optim::Segment> segments{{.range = {0, static_cast<std::int64_t>(count)}}};
  const auto adamw = optim::make_adamw({.weight_decay = 0.01});
  const optim::UpdateStep step{.update = 10, .learning_rate = 1e-4};
  optim::ShardView shard{.master = master.span(),
                         .gradients = gradients.span(),
                         .moments = {first.span(), second.span()},
                         .segments = segments};
  optim::ShardView rounding = shard;
  rounding.rounded.bits = {reinterpret_cast<std::uint16_t*>(narrow.data()), count};
  double norm = 0;
  const auto numel = static_cast<double>(count);
  const auto copy_by = [&](auto copy) {
    // Of arrays that AdamW has written, so that no candidate finds its own in a cache.
    return [&, copy] { copy_on_threads(second.data(), first.data(), count, copy); };
  };
  std::vector<Candidate> candidates{
      {"memcpy", 8 * numel, true, copy_by(copy_plain)},
      {"copy, vectors", 8 * numel, true, copy_by(copy_in_vectors)},
      {"copy, past the caches", 8 * numel, true, copy_by(copy_past_caches)},
      {"AdamW's arrays, sums alone", 28 * numel, false, [&] { add_in_place(shard); }},
      {"AdamW", 28 * numel, false, [&] { adamw->update(shard, step); }},
      {"AdamW and bf16 weights", 30 * numel, false, [&] { adamw->update(rounding, step); }},
      {"norm of the gradients", 4 * numel, false, [&] {
         norm += optim::sum_of_squares(shard.gradients);
       }}};
  for (int round = 0; round <= rounds; ++round) {
    run_round(candidates, round > 0);  // the first one warms up
  }
  fmt::print("{} parameters, {} threads, {} rounds (sum {:.3g})\n",
             count,
             omp_get_max_threads(),
             rounds,
             norm);
  report(candidates);
}

}  // namespace

int main(int argc, char** argv) {
  const auto millions = static_cast<std::size_t>(argc > 1 ? std::atoll(argv[1]) : 100);
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 9;
  measure(millions * 1'000'000, rounds);
  return 0;
}
