#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace zeroth::quickstart {

// The characters of one way to write Chinese numbers.
struct Numerals {
  std::array<std::string_view, 10> digits;  // 0..9
  std::array<std::string_view, 5> units;  // ones (empty), tens, hundreds, thousands, ten thousands
};

extern const Numerals kEveryday;  // what people write every day
extern const Numerals
    kFinancial;  // what stands on cheques, where a stroke must not turn one digit into another

// 1 <= number < 100,000, read in full: 10,205 is one-ten-thousand zero two-hundred zero five. A run
// of zeros inside is one zero, zeros at the end are none, and ten is "one ten".
[[nodiscard]] std::string in_chinese(std::uint64_t number, const Numerals& numerals);

}  // namespace zeroth::quickstart
