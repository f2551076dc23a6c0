#include "plan/byte_size.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include <fmt/format.h>

namespace zeroth::plan {
namespace {

constexpr std::string_view kLetters = "kmgtp";

// Bytes of one "GiB", "gib", "GB", "gb" or "B"; nullopt where it is none of these. "Gb" may be
// bits.
std::optional<double> unit_bytes(std::string_view unit) {
  if (unit == "B" || unit == "b") {
    return 1;
  }
  const bool upper = !unit.empty() && std::isupper(static_cast<unsigned char>(unit.front())) != 0;
  const auto power = unit.empty() ? std::string_view::npos
                                  : kLetters.find(static_cast<char>(
                                        std::tolower(static_cast<unsigned char>(unit.front()))));
  const std::string_view rest = unit.substr(power == std::string_view::npos ? 0 : 1);
  const bool decimal = rest == (upper ? "B" : "b");
  const bool binary = rest == (upper ? "iB" : "ib");
  if (power == std::string_view::npos || (!decimal && !binary)) {
    return std::nullopt;
  }
  return std::pow(decimal ? 1000.0 : 1024.0, static_cast<double>(power + 1));
}

}  // namespace

std::optional<Bytes> parse_byte_size(std::string_view text) {
  const std::string_view word = trim(text);
  double number = 0;
  const auto [end, error] =
      std::from_chars(word.data(), word.data() + word.size(), number, std::chars_format::fixed);
  if (error != std::errc()) {
    return std::nullopt;
  }
  const auto after = static_cast<std::size_t>(end - word.data());
  const std::optional<double> unit = unit_bytes(trim(word.substr(after)));
  constexpr double kTooMany = 0x1.0p63;
  if (!unit || !(number > 0) || number * *unit < 1 || number * *unit >= kTooMany) {
    return std::nullopt;
  }
  return Bytes(static_cast<std::int64_t>(std::floor(number * *unit)));
}

std::string byte_text(Bytes bytes) {
  constexpr std::array kUnits{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  constexpr double kStep = 1024;
  auto value = static_cast<double>(bytes.count());
  if (std::abs(value) < kStep) {
    return fmt::format("{} B", bytes.count());
  }
  std::size_t unit = 0;
  for (value /= kStep; std::abs(value) >= kStep && unit + 1 < kUnits.size(); ++unit) {
    value /= kStep;
  }
  return fmt::format("{:.2f} {}", value, kUnits.at(unit));
}

}  // namespace zeroth::plan
