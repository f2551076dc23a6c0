#pragma once

#include <string>

#include "text/fields.h"

namespace zeroth::text {

// SentencePiece's visible space, as a pre-tokenizer puts it in and a decoder takes it out.
struct Metaspace {
  enum class Scheme { kAlways, kFirst, kNever };  // where one is put before the text

  std::string replacement;
  Scheme scheme = Scheme::kAlways;
  bool split = true;

  [[nodiscard]] static Metaspace parse(Fields& fields);
};

}  // namespace zeroth::text
