#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"

namespace zeroth::formats {

// Reads typed fields of one JSON object and collects what is wrong with them, so that every fault
// of a file is told in one message. A field that is null counts as absent, as Transformers and PEFT
// write it. Readers return a harmless value after a fault; `require_sound` must be called before
// any of them is used.
class JsonFields {
 public:
  // `source` names the file in messages; `prefix` the object within it ("rope_scaling.").
  JsonFields(const Json& object, std::string source, std::string prefix = "");

  [[nodiscard]] bool has(const char* name) const;
  [[nodiscard]] bool mentions(const char* name) const;      // also where it says null
  [[nodiscard]] const Json& value(const char* name) const;  // null where absent
  // What nobody has asked for so far, but for null and false: a field left out or a feature that is
  // off. In the file's order.
  [[nodiscard]] std::vector<std::string> unread() const;

  [[nodiscard]] const std::string& source() const noexcept { return source_; }

  struct Range {
    std::int64_t from;
    std::int64_t to;
  };

  [[nodiscard]] std::int64_t integer(const char* name, Range range);
  [[nodiscard]] std::int64_t integer_or(const char* name, Range range, std::int64_t absent);
  [[nodiscard]] double number(const char* name);
  [[nodiscard]] double number_or(const char* name, double absent);
  [[nodiscard]] double positive(const char* name);
  [[nodiscard]] double positive_or(const char* name, double absent);
  [[nodiscard]] bool flag_or(const char* name, bool absent);
  [[nodiscard]] std::string text(const char* name);
  [[nodiscard]] std::string text_or(const char* name, const std::string& absent);
  // One token id or a list of them.
  [[nodiscard]] std::vector<std::int64_t> ids(const char* name);

  void fault(const std::string& name, const std::string& what);  // the file is wrong
  void unsupported(const std::string& name,
                   const std::string& what);  // the file is right, Zeroth lacks it
  void take_faults_of(const JsonFields& part);

  [[nodiscard]] bool faultless() const noexcept { return faults_.empty(); }

  // Throws kModel if there are faults, else kNotSupported if something is not supported.
  void require_sound(const std::string& mend_fault, const std::string& mend_unsupported) const;

 private:
  [[nodiscard]] bool require(const char* name);

  const Json* object_;
  std::string source_;
  std::string prefix_;
  mutable std::set<std::string> asked_;
  std::vector<std::string> faults_;
  std::vector<std::string> unsupported_;
};

}  // namespace zeroth::formats
