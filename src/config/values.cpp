// From the text of a command line to typed values, by declaration.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "config/document.h"
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
          .error = fmt::format("must be {}, not {}", range_text(declaration.range), text),
          .out_of_range = true};
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

bool knows_choice(const Declaration& declaration, const std::string& word) {
  const auto& choices = declaration.choices;
  return std::find(choices.begin(), choices.end(), word) != choices.end() ||
         declaration.planned_choices.contains(word) || declaration.refused_choices.contains(word);
}

ParsedValue parse_choice(const Declaration& declaration, std::string_view text) {
  const std::string lowered = lower(text);
  const auto synonym = declaration.synonyms.find(lowered);
  for (const std::string& word :
       {synonym == declaration.synonyms.end() ? std::string(text) : synonym->second, lowered}) {
    if (knows_choice(declaration, word)) {
      return {.value = word, .error = ""};
    }
  }
  for (const std::string& choice : declaration.choices) {
    if (lower(choice) == lowered) {  // DeepSpeed's own words differ in case alone
      return {.value = choice, .error = ""};
    }
  }
  return wrong("one of " + join(declaration.choices, ", "), text);
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

ParsedValue parse_numbers(const Declaration& declaration, std::string_view text) {
  std::string_view inner = trim(text);
  if (inner.size() >= 2 && inner.front() == '[' && inner.back() == ']') {
    inner = inner.substr(1, inner.size() - 2);
  }
  Json list = Json::array();
  for (const std::string& part : split(inner, ',')) {
    ParsedValue number = parse_number(declaration, trim(part));
    if (!number.error.empty()) {
      return number.out_of_range ? number : wrong("numbers separated by commas", text);
    }
    list.push_back(std::move(number.value));
  }
  return {.value = std::move(list), .error = ""};
}

ParsedValue parse_map(std::string_view text) {
  Problems twice;
  try {
    Json map = to_json(read_json(text, "", twice));
    return twice.empty() ? ParsedValue{.value = std::move(map), .error = ""}
                         : wrong("a JSON object {...} with each key once", text);
  } catch (const Error&) {
    return wrong("a JSON object {...}", text);
  }
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

std::string range_text(const Range& range) {
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

namespace {

// Python's word for "not given", where the key knows it.
bool says_none(const Declaration& declaration, std::string_view text) {
  const auto& off = declaration.off_values;
  const std::string word = lower(text);
  return (word == "none" || word == "null") &&
         std::find(off.begin(), off.end(), Json("none")) != off.end();
}

}  // namespace

ParsedValue parse_value(const Declaration& declaration, std::string_view text) {
  if (says_none(declaration, text)) {
    return {.value = "none", .error = ""};
  }
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
    case ValueType::kNumbers:
      return parse_numbers(declaration, text);
    case ValueType::kMap:
      return parse_map(text);
    case ValueType::kText:
      return text.empty() ? wrong("a text that is not empty", text)
                          : ParsedValue{.value = std::string(text), .error = ""};
    case ValueType::kAny:
      break;
  }
  return {.value = any_value(text), .error = ""};
}

namespace {

bool takes_text(ValueType type) {
  return type == ValueType::kText || type == ValueType::kChoice || type == ValueType::kList ||
         type == ValueType::kAny;
}

const char* expected_by(const Declaration& declaration) {
  switch (declaration.type) {
    case ValueType::kInteger:
      return "an integer";
    case ValueType::kNumber:
      return "a number";
    case ValueType::kBoolean:
      return "true or false";
    case ValueType::kList:
      return "a list of names";
    case ValueType::kNumbers:
      return "a list of numbers";
    case ValueType::kMap:
      return "a block";
    default:
      return "a text";
  }
}

ParsedValue not_a(const Declaration& declaration, const Node& node) {
  return {.value = nullptr,
          .error = fmt::format("takes {}, not {}", expected_by(declaration), kind_name(node))};
}

ParsedValue parse_items(const Declaration& declaration, const Node& node) {
  const bool numbers = declaration.type == ValueType::kNumbers;
  Json list = Json::array();
  for (const Node& item : node.items) {
    const bool fits = item.kind == Node::Kind::kPlain ||
                      item.kind == (numbers ? Node::Kind::kNumber : Node::Kind::kText);
    if (!fits) {
      return not_a(declaration, item);
    }
    ParsedValue value = numbers ? parse_number(declaration, item.text)
                                : ParsedValue{.value = item.text, .error = ""};
    if (!value.error.empty()) {
      return value;
    }
    list.push_back(std::move(value.value));
  }
  return {.value = std::move(list), .error = ""};
}

ParsedValue parse_scalar(const Declaration& declaration, const Node& node) {
  const ValueType type = declaration.type;
  const bool fits =
      node.kind == Node::Kind::kPlain || (node.kind == Node::Kind::kText && takes_text(type)) ||
      (node.kind == Node::Kind::kBoolean &&
       (type == ValueType::kBoolean || type == ValueType::kAny || type == ValueType::kChoice)) ||
      (node.kind == Node::Kind::kNumber &&
       (type == ValueType::kInteger || type == ValueType::kNumber || type == ValueType::kAny ||
        type == ValueType::kChoice));
  return fits ? parse_value(declaration, node.text) : not_a(declaration, node);
}

}  // namespace

ParsedValue parse_node(const Declaration& declaration, const Node& node) {
  if (declaration.may_be_auto && lower(node.text) == "auto") {
    return {.value = "auto", .error = ""};
  }
  const bool any = declaration.type == ValueType::kAny;
  switch (node.kind) {
    case Node::Kind::kList: {
      const bool list =
          declaration.type == ValueType::kList || declaration.type == ValueType::kNumbers;
      return list  ? parse_items(declaration, node)
             : any ? ParsedValue{.value = node.items.empty() ? Json("none") : to_json(node),
                                 .error = ""}
                   : not_a(declaration, node);
    }
    case Node::Kind::kBlock:
      return any || declaration.type == ValueType::kMap
                 ? ParsedValue{.value = to_json(node), .error = ""}
                 : not_a(declaration, node);
    default:
      return parse_scalar(declaration, node);
  }
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
    case ValueType::kNumbers:
      return "X,Y,...";
    case ValueType::kMap:
      return "{...}";
    default:
      return "TEXT";
  }
}

}  // namespace zeroth::config
