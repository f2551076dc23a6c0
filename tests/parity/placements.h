#pragma once

#include <array>

#include "parity/runs.h"

// Trainings whose state rests in memory or on file.
namespace zeroth::parity {

struct Places {
  bool optimizer_on_file;
  bool parameters_on_file;
};

inline constexpr std::array kOnFile{Places{true, false}, Places{false, true}, Places{true, true}};

[[nodiscard]] Case resting(Case test, const Places& places);

// Holds every placement that says something at the case's stage against memory.
void expect_same_bits_on_file(const Case& test);

}  // namespace zeroth::parity
