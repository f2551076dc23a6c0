#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace zeroth::text {

// The members of one JSON object of a tokenizer file, read by name and type. Wrong types are
// kFormat errors; a member that nobody asked for when `refuse_others` is called is kNotSupported:
// nothing written is ignored.
class Fields {
 public:
  // `where` is how messages name the object: "tokenizer.json: decoder.decoders[1]".
  Fields(const Json& object, std::string where);

  [[nodiscard]] const std::string& where() const noexcept { return where_; }

  std::string string(std::string_view key);
  std::string string_or(std::string_view key, std::string_view absent);  // also where it is null
  bool flag_or(std::string_view key, bool absent);
  std::int64_t integer(std::string_view key);
  const Json& any(std::string_view key);   // kFormat where it is absent
  const Json* find(std::string_view key);  // nullptr where it is absent or null
  const Json& array(std::string_view key);

  void without_effect(std::string_view key) { known_.emplace_back(key); }

  void refuse_others() const;

  [[noreturn]] void not_supported(std::string_view what) const;
  [[noreturn]] void wrong_type(std::string_view key,
                               std::string_view wanted,
                               const Json& found) const;

 private:
  const Json& object_;
  std::string where_;
  std::vector<std::string> known_;
};

}  // namespace zeroth::text
