#pragma once

#include <string>

#include "base/random.h"

namespace zeroth::quickstart {

// One document of the base model's pre-training text: small stories, and short dialogues that
// practise the pieces of the quickstart's task (copying spelled words, finding the first vowel,
// reading numbers in Chinese, the table of financial numerals) without ever showing the task
// itself.
[[nodiscard]] std::string pretraining_document(RandomStream& random);

}  // namespace zeroth::quickstart
