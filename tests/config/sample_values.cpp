#include "config/sample_values.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "config/document.h"
#include "config/read_files.h"
#include <fmt/format.h>

namespace zeroth::config {
namespace {

bool allowed(const Range& range, double x) {
  if (range.also && x == *range.also) {
    return true;
  }
  const bool low = range.min && (range.min_excluded ? x <= *range.min : x < *range.min);
  const bool high = range.max && (range.max_excluded ? x >= *range.max : x > *range.max);
  return !low && !high;
}

Json number_of(const Declaration& key, double x) {
  return key.type == ValueType::kInteger ? Json(static_cast<std::int64_t>(x)) : Json(x);
}

std::vector<Json> numbers(const Declaration& key) {
  const double base = key.default_value.is_number() ? key.default_value.get<double>() : 1;
  std::vector<double> candidates{base + 1, base + 2, base - 1, base - 2, 1, 2, 3, 4, 16, 32};
  if (key.type == ValueType::kNumber) {
    candidates.insert(candidates.begin(), {0.25, 0.5, 0.75});
  }
  for (const auto& bound : {key.range.min, key.range.max}) {
    if (bound) {
      candidates.insert(candidates.end(), {*bound, *bound + 1, *bound - 1});
    }
  }
  std::vector<Json> values;
  for (const double x : candidates) {
    if (allowed(key.range, x)) {
      values.push_back(number_of(key, x));
    }
  }
  return values;
}

std::vector<Json> choices(const Declaration& key) {
  std::vector<Json> values(key.choices.begin(), key.choices.end());
  if (key.name.starts_with("zero_optimization.offload_")) {
    std::erase(values, Json("cpu"));  // where state is anyway: never in force on a processor
  }
  for (const auto* further : {&key.planned_choices, &key.refused_choices}) {
    if (values.empty()) {
      for (const auto& [choice, why] : *further) {
        values.push_back(choice);
      }
    }
  }
  return values;
}

std::vector<Json> candidates_for(const Declaration& key) {
  switch (key.type) {
    case ValueType::kInteger:
    case ValueType::kNumber:
      return numbers(key);
    case ValueType::kBoolean:
      return {true, false};
    case ValueType::kChoice:
      return choices(key);
    case ValueType::kList:
      return {Json::array({"one"}), Json::array({"two", "three"})};
    case ValueType::kNumbers:
      return {Json::array({0.25, 0.5}), Json::array({0.5, 0.75})};
    case ValueType::kMap:
      return {{{"one", 1}}, {{"two", 2}, {"three", 3}}};
    case ValueType::kText:
    case ValueType::kAny:
      break;
  }
  return {"one", "two"};
}

}  // namespace

std::vector<Json> sample_values(const Declaration& key) {
  std::vector<Json> values;
  for (Json& candidate : candidates_for(key)) {
    const bool taken = std::find(values.begin(), values.end(), candidate) != values.end();
    if (!taken && candidate != key.default_value) {
      values.push_back(std::move(candidate));
    }
  }
  if (values.size() < 2 && !key.default_value.is_null()) {
    values.push_back(key.default_value);
  }
  values.resize(std::min<std::size_t>(values.size(), 2));
  return values;
}

std::vector<Json> values_out_of_range(const Declaration& key) {
  std::vector<double> outside;
  const Range& range = key.range;
  if (range.min) {
    outside.push_back(range.min_excluded ? *range.min : *range.min - 1);
    outside.push_back(*range.min - 7);
  }
  if (range.max) {
    outside.push_back(range.max_excluded ? *range.max : *range.max + 1);
    outside.push_back(*range.max + 7);
  }
  std::vector<Json> values;
  for (const double x : outside) {
    if (allowed(range, x)) {
      continue;  // the value beside the range with a meaning of its own
    }
    const Json value = number_of(key, x);
    values.push_back(key.type == ValueType::kNumbers ? Json::array({value, value}) : value);
  }
  return values;
}

std::vector<Json> values_of_wrong_type(const Declaration& key, Dialect dialect) {
  const Json block{{"x", 1}};
  const bool json = dialect == Dialect::kDeepSpeed;
  switch (key.type) {
    case ValueType::kInteger:
      return {"eight", 1.5, true, Json::array({"a"}), block};
    case ValueType::kNumber:
      return {"eight", true, Json::array({1}), block};
    case ValueType::kBoolean:
      return {"maybe", 5, Json::array({true}), block};
    case ValueType::kChoice:
      return {"no such choice", Json::array({"a"}), block};
    case ValueType::kList:
      return json ? std::vector<Json>{5, true, block} : std::vector<Json>{block};
    case ValueType::kNumbers:
      return {"eight", Json::array({"a"}), block};
    case ValueType::kMap:
      return {5, "eight", Json::array({1})};
    case ValueType::kText:
      return json ? std::vector<Json>{5, true, Json::array({"a"})}
                  : std::vector<Json>{Json::array({"a"})};
    case ValueType::kAny:
      break;
  }
  return {};
}

Document document_with(Dialect dialect, const std::string& path, const Json& value) {
  if (dialect == Dialect::kRecipe) {
    return {.text = fmt::format("{}: {}\n", path, value.dump()), .line = 1};
  }
  const std::vector<std::string> parts = split(path, '.');
  if (dialect == Dialect::kDeepSpeed) {
    Json inner = value;
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      inner = Json{{*part, inner}};
    }
    return {.text = inner.dump(2), .line = parts.size() + 1};
  }
  std::string text;
  for (std::size_t depth = 0; depth < parts.size(); ++depth) {
    text += fmt::format("{:{}}{}:", "", 2 * depth, parts[depth]);
    text += depth + 1 == parts.size() ? fmt::format(" {}\n", value.dump()) : "\n";
  }
  return {.text = std::move(text), .line = parts.size()};
}

std::string file_name(Dialect dialect) {
  return dialect == Dialect::kDeepSpeed ? "file.json" : "file.yaml";
}

Reading reading_of(Dialect dialect, const std::string& path, const Json& value) {
  const Document document = document_with(dialect, path, value);
  const std::string name = file_name(dialect);
  Problems problems;
  Gathered gathered;
  const Node node = dialect == Dialect::kDeepSpeed ? read_json(document.text, name, problems)
                                                   : read_yaml(document.text, name, problems);
  gather(node, dialect, name, gathered, problems);
  return {.account = gathered.account,
          .problems = problems.all(),
          .source = fmt::format("{}:{}", name, document.line)};
}

std::string as_argument(const std::string& name, const Json& value) {
  return fmt::format("--{}={}", name, value.is_object() ? value.dump() : shown(value));
}

}  // namespace zeroth::config
