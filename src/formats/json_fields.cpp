#include "formats/json_fields.h"

#include <cmath>
#include <utility>

#include "base/text.h"
#include "formats/strict_json.h"
#include <fmt/format.h>

namespace zeroth::formats {

JsonFields::JsonFields(const Json& object, std::string source, std::string prefix)
    : object_(&object), source_(std::move(source)), prefix_(std::move(prefix)) {
}

const Json& JsonFields::value(const char* name) const {
  static const Json kAbsent;
  asked_.emplace(name);
  const auto found = object_->find(name);
  return found == object_->end() ? kAbsent : *found;
}

bool JsonFields::has(const char* name) const {
  return !value(name).is_null();
}

bool JsonFields::mentions(const char* name) const {
  return object_->contains(name);
}

std::vector<std::string> JsonFields::unread() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : object_->items()) {
    if (!value.is_null() && value != false && !asked_.contains(name)) {
      names.push_back(name);
    }
  }
  return names;
}

bool JsonFields::require(const char* name) {
  if (!has(name)) {
    fault(name, "is missing");
    return false;
  }
  return true;
}

std::int64_t JsonFields::integer(const char* name, Range range) {
  return require(name) ? integer_or(name, range, range.from) : range.from;
}

std::int64_t JsonFields::integer_or(const char* name, Range range, std::int64_t absent) {
  const Json& found = value(name);
  if (found.is_null()) {
    return absent;
  }
  // An unsigned number above int64's range would turn negative: it is out of any range here.
  const bool fits = found.is_number_integer() &&
                    !(found.is_number_unsigned() && found.get<std::uint64_t>() >> 63 != 0);
  if (!fits || found.get<std::int64_t>() < range.from || found.get<std::int64_t>() > range.to) {
    fault(name, fmt::format("must be a whole number from {} to {}", range.from, range.to));
    return range.from;
  }
  return found.get<std::int64_t>();
}

double JsonFields::number(const char* name) {
  return require(name) ? number_or(name, 0) : 0;
}

double JsonFields::number_or(const char* name, double absent) {
  const Json& found = value(name);
  if (found.is_null()) {
    return absent;
  }
  if (!found.is_number() || !std::isfinite(found.get<double>())) {
    fault(name, "must be a number");
    return absent;
  }
  return found.get<double>();
}

double JsonFields::positive(const char* name) {
  return require(name) ? positive_or(name, 1) : 1;
}

double JsonFields::positive_or(const char* name, double absent) {
  const double found = number_or(name, absent);
  if (found <= 0) {
    fault(name, "must be greater than 0");
    return absent;
  }
  return found;
}

bool JsonFields::flag_or(const char* name, bool absent) {
  const Json& found = value(name);
  if (found.is_null()) {
    return absent;
  }
  if (!found.is_boolean()) {
    fault(name, "must be true or false");
    return absent;
  }
  return found.get<bool>();
}

std::string JsonFields::text(const char* name) {
  return require(name) ? text_or(name, "") : "";
}

std::string JsonFields::text_or(const char* name, const std::string& absent) {
  const Json& found = value(name);
  if (found.is_null()) {
    return absent;
  }
  if (!found.is_string()) {
    fault(name, "must be a string");
    return absent;
  }
  return found.get<std::string>();
}

std::vector<std::int64_t> JsonFields::ids(const char* name) {
  constexpr std::int64_t kMaxId = 1 << 30;
  const Json& found = value(name);
  if (found.is_null()) {
    return {};
  }
  std::vector<std::int64_t> ids;
  for (const Json& item : found.is_array() ? found : Json::array({found})) {
    if (!item.is_number_unsigned() || item.get<std::uint64_t>() > kMaxId) {
      fault(name, "must be a token id or a list of token ids");
      return {};
    }
    ids.push_back(item.get<std::int64_t>());
  }
  return ids;
}

void JsonFields::fault(const std::string& name, const std::string& what) {
  const Json& found = value(name.c_str());
  faults_.push_back(found.is_null()
                        ? fmt::format("{}{} {}", prefix_, name, what)
                        : fmt::format("{}{} = {}: {}", prefix_, name, shown(found), what));
}

void JsonFields::unsupported(const std::string& name, const std::string& what) {
  unsupported_.push_back(
      fmt::format("{}{} = {}: {}", prefix_, name, shown(value(name.c_str())), what));
}

void JsonFields::take_faults_of(const JsonFields& part) {
  faults_.insert(faults_.end(), part.faults_.begin(), part.faults_.end());
  unsupported_.insert(unsupported_.end(), part.unsupported_.begin(), part.unsupported_.end());
}

void JsonFields::require_sound(const std::string& mend_fault,
                               const std::string& mend_unsupported) const {
  const bool faulty = !faults_.empty();
  const std::vector<std::string>& lines = faulty ? faults_ : unsupported_;
  if (!lines.empty()) {
    throw Error(faulty ? ErrorKind::kModel : ErrorKind::kNotSupported,
                fmt::format("{}: {}\n    {}\n  {}",
                            source_,
                            faulty ? "faulty fields" : "not supported",
                            join(lines, "\n    "),
                            faulty ? mend_fault : mend_unsupported));
  }
}

}  // namespace zeroth::formats
