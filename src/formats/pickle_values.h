#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "formats/pickle.h"

// What an unpickler holds while it reads.
namespace zeroth::formats::pickle {

enum class Kind {
  kNone,
  kBool,
  kInteger,
  kFloat,
  kText,
  kTuple,
  kList,
  kDict,  // items: key, value, key, value
  kCallable,
  kStorage,
  kTensor
};

// Values refer to each other, maybe in circles; a Heap owns them all.
struct Value {
  Kind kind = Kind::kNone;
  std::int64_t integer = 0;
  std::string text;  // of a callable: "module.name"
  std::vector<Value*> items;
  PickledTensor tensor;  // of a storage: its record, type and size
};

class Heap {
 public:
  // Null when there are more than any state dictionary has.
  [[nodiscard]] Value* make(Kind kind) {
    if (values_.size() >= kMost) {
      return nullptr;
    }
    values_.push_back({.kind = kind});
    return &values_.back();
  }

 private:
  static constexpr std::size_t kMost = 1'000'000;
  std::deque<Value> values_;
};

}  // namespace zeroth::formats::pickle
