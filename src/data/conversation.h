#pragma once

#include <string>
#include <vector>

#include "text/prompt_template.h"

namespace zeroth::data {

// A supervised row of any format.
struct Conversation {
  std::string system;
  std::vector<text::Turn>
      turns;  // at least one; the last one's answer is empty where there is none
};

enum class Answer { kRequired, kOptional };

}  // namespace zeroth::data
