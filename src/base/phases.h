#pragma once

#include <array>
#include <cstddef>

namespace zeroth {

// What a thread is doing, as far as anybody asks: `bench` and the records of a run.
enum class Phase { kOther, kProducts, kAttention, kCollectives, kOptimizer };

inline constexpr std::size_t kNumPhases = 5;

[[nodiscard]] const char* name_of(Phase phase) noexcept;

// Seconds of each phase. A moment counts for one phase alone: the innermost, but that the products
// inside attention are attention's.
struct PhaseSeconds {
  std::array<double, kNumPhases> seconds{};

  [[nodiscard]] double of(Phase phase) const noexcept {
    return seconds[static_cast<std::size_t>(phase)];
  }

  [[nodiscard]] double total() const noexcept;
};

// Begins to measure on this thread, from zero and in kOther. Without it a scope costs one look at a
// flag.
void start_phases() noexcept;
// What was measured since; measuring ends.
[[nodiscard]] PhaseSeconds finish_phases() noexcept;

// This thread is in a phase while it lives.
class PhaseScope {
 public:
  explicit PhaseScope(Phase phase) noexcept;
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;
  ~PhaseScope();

 private:
  Phase before_ = Phase::kOther;
  bool switched_ = false;
};

}  // namespace zeroth
