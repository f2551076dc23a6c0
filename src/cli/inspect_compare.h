#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/inspect_read.h"

// How what two paths hold differs: weights by name, of checkpoints the optimizer's state as well,
// whoever wrote it, and settings.
namespace zeroth::cli {

struct OtherForm {
  std::string name;
  std::string here;  // "F32 [4, 3]"
  std::string there;
};

struct OtherValues {
  std::string name;
  std::int64_t elements = 0;
  std::int64_t differing = 0;           // not the same bits once both are fp32
  double largest = 0;                   // difference of those that have one
  std::int64_t without_difference = 0;  // of the differing: NaN on a side, or two infinities
  bool measured = true;                 // false: of a type whose values are not compared as numbers
};

struct OtherSetting {
  std::string key;
  Json here;  // null: not there
  Json there;
};

struct Comparison {
  std::vector<std::string> only_here;
  std::vector<std::string> only_there;
  std::vector<OtherForm> other_form;
  std::vector<OtherValues> other_values;
  std::int64_t equal_tensors = 0;
  std::vector<OtherSetting> settings;
  std::vector<std::string> faults;  // what could not be compared

  [[nodiscard]] bool equal_values() const;

  [[nodiscard]] bool equal() const { return equal_values() && settings.empty(); }
};

[[nodiscard]] Comparison compare(const Inspected& here, const Inspected& there);

}  // namespace zeroth::cli
