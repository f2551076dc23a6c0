#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/communicator.h"
#include "comm/make.h"
#include <fmt/format.h>

// What the tests of this folder share: one exercise of all operations, and ranks to run it on.
namespace zeroth::comm::testing {

using Bytes = std::vector<std::byte>;

// What a rank puts at `index` of the inputs of a round; magnitudes vary, so that the order of
// additions shows.
inline float sample(std::int64_t rank, std::int64_t round, std::int64_t index) {
  const auto mixed = static_cast<std::uint32_t>(rank * 7919 + round * 104729 + index * 31 + 17);
  const std::uint32_t hashed = (mixed ^ (mixed >> 7)) * 2654435761U;
  const float unit = static_cast<float>(hashed >> 8) / 16777216.0F - 0.5F;
  return unit * std::bit_cast<float>((115 + hashed % 24) << 23);  // times 2^-12 to 2^11
}

// The sum in rank order, as every backend must give it.
inline float expected_sum(std::int64_t size, std::int64_t round, std::int64_t index) {
  float sum = sample(0, round, index);
  for (std::int64_t r = 1; r < size; ++r) {
    sum += sample(r, round, index);
  }
  return sum;
}

// Uneven ranges, every third of them empty, with gaps between.
inline std::vector<Span> uneven_ranges(std::int64_t size, std::int64_t numel) {
  std::vector<Span> ranges;
  for (std::int64_t r = 0; r < size; ++r) {
    const std::int64_t begin = numel * r / size;
    const std::int64_t length = r % 3 == 2 ? 0 : std::max<std::int64_t>(numel / size - 5 * r, 0);
    ranges.push_back({begin, std::min(begin + length, numel)});
  }
  return ranges;
}

// Calls every operation in several sizes and collects the results.
class Exercise {
 public:
  explicit Exercise(Communicator& communicator)
      : comm_(communicator), rank_(communicator.rank()), size_(communicator.size()) {}

  [[nodiscard]] Bytes run() {
    for (const std::int64_t numel : {1, 97, 5000, 280'000}) {
      reduce_scatters(numel, false);
      reduce_scatters(numel, true);
      all_reduces(numel);
      gathers(numel);
      gathers_into_larger(numel);
      broadcasts(numel);
      exchanges(numel);
      if (size_ > 1) {
        passes_on(numel);
      }
      ++round_;
    }
    several_in_flight();
    values();
    comm_.barrier("end");
    return std::move(results_);
  }

 private:
  template <typename T>
  void keep(std::span<const T> values) {
    const auto bytes = std::as_bytes(values);
    results_.insert(results_.end(), bytes.begin(), bytes.end());
  }

  void fill(std::span<float> values, std::int64_t round) const {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = sample(rank_, round, static_cast<std::int64_t>(i));
    }
  }

  [[nodiscard]] std::vector<float> filled(std::int64_t numel) const {
    std::vector<float> values(static_cast<std::size_t>(numel));
    fill(values, round_);
    return values;
  }

  void reduce_scatters(std::int64_t numel, bool accumulate) {
    const BufferPtr input = comm_.allocate(numel * 4);
    fill(input->as<float>(), round_);
    const std::vector<Span> ranges = uneven_ranges(size_, numel);
    const Span own = ranges[static_cast<std::size_t>(rank_)];
    std::vector<float> output(static_cast<std::size_t>(own.end - own.begin), 0.25F);
    comm_.reduce_scatter("gradients", input, ranges, output, accumulate).wait();
    keep(std::span<const float>(output));
  }

  void all_reduces(std::int64_t numel) {
    std::vector<float> values = filled(numel);
    comm_.all_reduce("norms", values).wait();
    keep(std::span<const float>(values));
  }

  // Into private and into shared memory, from private memory, from a buffer, and in place.
  void gathers(std::int64_t numel) {
    const std::vector<float> shard = filled(numel);
    const auto all = static_cast<std::size_t>(numel * size_ * 4);
    const auto full = make_private_buffer(all);
    comm_.all_gather("private", std::as_bytes(std::span(shard)), full).wait();
    keep(std::span<const std::byte>(full->as<std::byte>()));

    const BufferPtr buffer = comm_.allocate(numel * 4);
    fill(buffer->as<float>(), round_ + 50);
    comm_.all_gather("from buffer", buffer->as<std::byte>(), full).wait();
    keep(std::span<const std::byte>(full->as<std::byte>()));

    const BufferPtr shared = comm_.allocate_shared(numel * size_ * 4);
    comm_.all_gather("shared", std::as_bytes(std::span(shard)), shared).wait();
    keep(std::span<const std::byte>(shared->as<std::byte>()));
    comm_.barrier("before it is overwritten");
    const auto part = shared->as<std::byte>().subspan(static_cast<std::size_t>(rank_ * numel * 4),
                                                      static_cast<std::size_t>(numel * 4));
    std::copy_n(buffer->data(), part.size(), part.begin());
    comm_.all_gather("in place", part, shared).wait();
    keep(std::span<const std::byte>(shared->as<std::byte>()));
  }

  // The front of a buffer is filled, the rest stays as it is.
  void gathers_into_larger(std::int64_t numel) {
    const std::vector<float> shard = filled(numel);
    const std::int64_t room = numel * size_ * 4 + 100;
    for (const BufferPtr& full :
         {comm_.allocate_shared(room), make_private_buffer(static_cast<std::size_t>(room))}) {
      comm_.all_gather("larger", std::as_bytes(std::span(shard)), full).wait();
      keep(std::span<const std::byte>(full->as<std::byte>()));
    }
  }

  void broadcasts(std::int64_t numel) {
    std::vector<float> values = filled(numel);
    comm_.broadcast("weights", std::as_writable_bytes(std::span(values)), size_ - 1).wait();
    keep(std::span<const float>(values));
  }

  void exchanges(std::int64_t numel) {
    const std::vector<float> input = filled(numel * size_);
    std::vector<float> output(input.size());
    comm_
        .all_to_all(
            "experts", std::as_bytes(std::span(input)), std::as_writable_bytes(std::span(output)))
        .wait();
    keep(std::span<const float>(output));
  }

  // Around the ring, all sending at once, two messages after one another.
  void passes_on(std::int64_t numel) {
    const std::vector<float> mine = filled(numel);
    std::vector<float> first(mine.size());
    std::vector<float> second(mine.size());
    const std::int64_t next = (rank_ + 1) % size_;
    const std::int64_t last = (rank_ + size_ - 1) % size_;
    InFlight send_first = comm_.send("first", std::as_bytes(std::span(mine)), next);
    InFlight send_second = comm_.send("second", std::as_bytes(std::span(mine)), next);
    InFlight get_first = comm_.recv("first", std::as_writable_bytes(std::span(first)), last);
    InFlight get_second = comm_.recv("second", std::as_writable_bytes(std::span(second)), last);
    send_second.wait();
    get_second.wait();
    get_first.wait();
    send_first.wait();
    keep(std::span<const float>(first));
    keep(std::span<const float>(second));
  }

  // Started together, waited for in another order on each rank.
  void several_in_flight() {
    constexpr std::int64_t kNumel = 20'000;
    constexpr int kStarted = 40;  // more than there are records
    std::vector<BufferPtr> inputs;
    std::vector<std::vector<float>> outputs;
    const std::vector<Span> ranges = uneven_ranges(size_, kNumel);
    const Span own = ranges[static_cast<std::size_t>(rank_)];
    for (int i = 0; i < kStarted; ++i) {
      inputs.push_back(comm_.allocate(kNumel * 4));
      fill(inputs.back()->as<float>(), i);
      outputs.emplace_back(static_cast<std::size_t>(own.end - own.begin));
    }
    std::vector<InFlight> started;
    for (std::size_t i = 0; i < kStarted; ++i) {
      started.push_back(comm_.reduce_scatter("bucket", inputs[i], ranges, outputs[i], false));
    }
    for (std::size_t i = 0; i < kStarted; ++i) {
      const std::size_t which = rank_ % 2 == 0 ? i : kStarted - 1 - i;
      started[which].wait();
    }
    for (const std::vector<float>& output : outputs) {
      keep(std::span<const float>(output));
    }
  }

  void values() {
    const std::vector<double> mine = {1.0 / static_cast<double>(rank_ + 1), -2.5};
    const std::vector<double> all = comm_.gather_values("tokens", mine);
    keep(std::span<const double>(all));
  }

  Communicator& comm_;
  std::int64_t rank_;
  std::int64_t size_;
  std::int64_t round_ = 0;
  Bytes results_;
};

// Runs `body` on ranks that are threads; gives each rank's error message, "" if there was none.
inline std::vector<std::string> on_ranks(std::vector<std::unique_ptr<Communicator>> ranks,
                                         const std::function<void(Communicator&)>& body) {
  std::vector<std::string> errors(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    threads.emplace_back([&, r] {
      try {
        body(*ranks[r]);
      } catch (const std::exception& error) {
        errors[r] = error.what();
        ranks[r]->abort(error.what());
      }
      ranks[r].reset();
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return errors;
}

inline std::vector<std::string> on_threads(int size,
                                           const std::function<void(Communicator&)>& body) {
  return on_ranks(make_thread_group(size), body);
}

// The results of the exercise, by rank.
inline std::vector<Bytes> exercise_on_threads(int size) {
  std::vector<Bytes> results(static_cast<std::size_t>(size));
  on_threads(size, [&](Communicator& comm) {
    results[static_cast<std::size_t>(comm.rank())] = Exercise(comm).run();
  });
  return results;
}

inline std::string fingerprint(const Bytes& bytes) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const std::byte byte : bytes) {
    hash = (hash ^ static_cast<std::uint64_t>(byte)) * 1099511628211ULL;
  }
  return fmt::format("{} bytes {:016x}", bytes.size(), hash);
}

}  // namespace zeroth::comm::testing
