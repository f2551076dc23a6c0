#pragma once

#include <array>
#include <cstdint>

namespace zeroth {

// Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a pure
// function from (key, counter) to 128 random bits. Whatever must not depend on ranks or on the
// order of work (dropout masks, shuffles, initial weights) draws from it by position.
[[nodiscard]] std::array<std::uint32_t, 4> philox(std::uint64_t key,
                                                  std::uint64_t counter_low,
                                                  std::uint64_t counter_high) noexcept;

// A stream of numbers for one purpose: a key and a running position.
class RandomStream {
 public:
  // `purpose` keeps streams of one seed apart; equal (seed, purpose) give equal streams.
  RandomStream(std::uint64_t seed, std::uint64_t purpose) noexcept
      : key_(seed), purpose_(purpose) {}

  [[nodiscard]] std::uint32_t next() noexcept;
  [[nodiscard]] std::uint64_t below(
      std::uint64_t bound) noexcept;        // uniform in [0, bound), bound > 0
  [[nodiscard]] double uniform() noexcept;  // in [0, 1)
  [[nodiscard]] double normal() noexcept;   // mean 0, deviation 1

 private:
  std::uint64_t key_;
  std::uint64_t purpose_;
  std::uint64_t position_ = 0;
  std::array<std::uint32_t, 4> block_{};
  std::uint32_t used_ = 4;
};

}  // namespace zeroth
