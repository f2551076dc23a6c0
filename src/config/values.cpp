// From the text of a command line to typed values, by declaration.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "config/schema.h"
#include <fmt/format.h>

namespace zeroth::config {
namespace {

// Beyond this a double no longer holds every integer, so 1e30 cannot be meant as one.
constexpr double kLargestExactInteger = 9007199254740992.0;

std::string lower(std::string_view text) {
  std::string lowered(text);
  std::transform(lowered.begin(), lowered.end(), lowered.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return lowered;
}

ParsedValue wrong(std::string_view expected, std::string_view text) {
  return {.value = nullptr, .error = fmt::format("takes {}, not \"{}\"", expected, text)};
}

template <typename T>
std::optional<T> read_number(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') {
    text.remove_prefix(1);
  }
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return number;
}

std::optional<std::int64_t> read_integer(std::string_view text) {
  if (const auto integer = read_number<std::int64_t>(text)) {
    return integer;
  }
  const auto number = read_number<double>(text);  // 2e8 is an integer
  if (!number || std::floor(*number) != *number || std::abs(*number) > kLargestExactInteger) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(*number);
}

std::optional<bool> read_boolean(std::string_view text) {
  const std::string word = lower(text);
  for (const char* yes : {"true", "yes", "1", "on", "t", "y"}) {
    if (word == yes) {
      return true;
    }
  }
  for (const char* no : {"false", "no", "0", "off", "f", "n"}) {
    if (word == no) {
      return false;
    }
  }
  return std::nullopt;
}

std::string describe(const Range& range) {
  std::string text;
  if (range.min) {
    text += fmt::format("{} {:g}", range.min_excluded ? "above" : "at least", *range.min);
  }
  if (range.max) {
    text += fmt::format("{}{} {:g}",
                        text.empty() ? "" : " and ",
                        range.max_excluded ? "below" : "at most",
                        *range.max);
  }
  return range.also ? fmt::format("{}, or {:g}", text, *range.also) : text;
}

bool within(const Range& range, double number) {
  if (range.also && number == *range.also) {
    return true;
  }
  const bool above =
      !range.min || (range.min_excluded ? number > *range.min : number >= *range.min);
  const bool below =
      !range.max || (range.max_excluded ? number < *range.max : number <= *range.max);
  return above && below;
}

ParsedValue in_range(const Declaration& declaration, Json value, std::string_view text) {
  if (within(declaration.range, value.get<double>())) {
    return {.value = std::move(value), .error = ""};
  }
  return {.value = nullptr,
          .error = fmt::format("must be {}, not {}", describe(declaration.range), text)};
}

ParsedValue parse_integer(const Declaration& declaration, std::string_view text) {
  const auto integer = read_integer(text);
  return integer ? in_range(declaration, *integer, text) : wrong("an integer", text);
}

ParsedValue parse_number(const Declaration& declaration, std::string_view text) {
  const auto number = read_number<double>(text);
  return number && std::isfinite(*number) ? in_range(declaration, *number, text)
                                          : wrong("a number", text);
}

ParsedValue parse_choice(const Declaration& declaration, std::string_view text) {
  std::string word(text);
  if (const auto synonym = declaration.synonyms.find(word); synonym != declaration.synonyms.end()) {
    word = synonym->second;
  }
  const auto& choices = declaration.choices;
  if (std::find(choices.begin(), choices.end(), word) == choices.end()) {
    return wrong("one of " + join(choices, ", "), text);
  }
  return {.value = word, .error = ""};
}

ParsedValue parse_list(std::string_view text) {
  Json list = Json::array();
  for (const std::string& part : split(text, ',')) {
    const std::string_view word = trim(part);
    if (word.empty()) {
      return wrong("names separated by commas, none of them empty", text);
    }
    list.push_back(std::string(word));
  }
  return {.value = std::move(list), .error = ""};
}

// For keys whose values are only compared with their "off" values.
Json any_value(std::string_view text) {
  const std::string word = lower(text);
  if (word == "true" || word == "false") {
    return word == "true";
  }
  if (word == "none" || word == "null" || word == "[]") {
    return "none";
  }
  if (const auto integer = read_number<std::int64_t>(text)) {
    return *integer;
  }
  if (const auto number = read_number<double>(text)) {
    return *number;
  }
  return std::string(text);
}

}  // namespace

ParsedValue parse_value(const Declaration& declaration, std::string_view text) {
  switch (declaration.type) {
    case ValueType::kInteger:
      return parse_integer(declaration, text);
    case ValueType::kNumber:
      return parse_number(declaration, text);
    case ValueType::kBoolean: {
      const auto boolean = read_boolean(text);
      return boolean ? ParsedValue{.value = *boolean, .error = ""} : wrong("true or false", text);
    }
    case ValueType::kChoice:
      return parse_choice(declaration, text);
    case ValueType::kList:
      return parse_list(text);
    case ValueType::kText:
      return text.empty() ? wrong("a text that is not empty", text)
                          : ParsedValue{.value = std::string(text), .error = ""};
    case ValueType::kAny:
      break;
  }
  return {.value = any_value(text), .error = ""};
}

std::string value_placeholder(const Declaration& declaration) {
  switch (declaration.type) {
    case ValueType::kInteger:
      return "INTEGER";
    case ValueType::kNumber:
      return "NUMBER";
    case ValueType::kBoolean:
      return "[true|false]";
    case ValueType::kChoice:
      return join(declaration.choices, "|");
    case ValueType::kList:
      return "A,B,...";
    default:
      return "TEXT";
  }
}

}  // namespace zeroth::config
