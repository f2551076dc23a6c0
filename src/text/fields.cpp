#include "text/fields.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include <fmt/format.h>

namespace zeroth::text {

Fields::Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (!object.is_object()) {
    throw Error(ErrorKind::kFormat,
                fmt::format("{} should be an object, but is {}", where_, type_name(object)));
  }
}

void Fields::wrong_type(std::string_view key, std::string_view wanted, const Json& found) const {
  throw Error(
      ErrorKind::kFormat,
      fmt::format("{}: \"{}\" should be {}, but is {}", where_, key, wanted, type_name(found)));
}

void Fields::not_supported(std::string_view what) const {
  throw Error(ErrorKind::kNotSupported, fmt::format("{}: {} is not built", where_, what));
}

const Json* Fields::find(std::string_view key) {
  known_.emplace_back(key);
  const auto found = object_.find(std::string(key));
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

const Json& Fields::any(std::string_view key) {
  const Json* found = find(key);
  if (found == nullptr) {
    throw Error(ErrorKind::kFormat, fmt::format("{} lacks \"{}\"", where_, key));
  }
  return *found;
}

std::string Fields::string(std::string_view key) {
  const Json& found = any(key);
  if (!found.is_string()) {
    wrong_type(key, "a string", found);
  }
  return found.get<std::string>();
}

std::string Fields::string_or(std::string_view key, std::string_view absent) {
  return find(key) == nullptr ? std::string(absent) : string(key);
}

bool Fields::flag_or(std::string_view key, bool absent) {
  const Json* found = find(key);
  if (found == nullptr) {
    return absent;
  }
  if (!found->is_boolean()) {
    wrong_type(key, "true or false", *found);
  }
  return found->get<bool>();
}

std::int64_t Fields::integer(std::string_view key) {
  const Json& found = any(key);
  if (!found.is_number_integer()) {
    wrong_type(key, "a whole number", found);
  }
  return found.get<std::int64_t>();
}

const Json& Fields::array(std::string_view key) {
  const Json& found = any(key);
  if (!found.is_array()) {
    wrong_type(key, "an array", found);
  }
  return found;
}

void Fields::refuse_others() const {
  for (const auto& [key, value] : object_.items()) {
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
      not_supported(fmt::format("\"{}\"", key));
    }
  }
}

}  // namespace zeroth::text
