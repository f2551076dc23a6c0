#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace zeroth::text {

struct Turn {
  std::string user;
  std::string assistant;
};

// Named prompt formats with LLaMA-Factory's texts ("alpaca", "default", "empty"). Each slot is
// tokenised by itself without special tokens and the ids are concatenated, so a boundary can never
// merge; the tokenizer's own prefix (BOS) comes once, at the very start.
class PromptTemplate {
 public:
  // kConfig, with the names there are, for any other name.
  [[nodiscard]] static PromptTemplate named(std::string_view name);
  [[nodiscard]] static std::vector<std::string> names();

  struct EncodedTurn {
    std::vector<TokenId>
        prompt;  // everything before the answer (BOS and system text in the first turn)
    std::vector<TokenId>
        answer;  // the answer, closed by the end token and whatever the format writes after it
    std::size_t num_answer_targets =
        0;  // leading ids of `answer` that are trained (through the end token)
  };

  // All turns in order; the last turn's `answer` may be left out by generation.
  [[nodiscard]] std::vector<EncodedTurn> encode(const Tokenizer& tokenizer,
                                                std::string_view system,
                                                std::span<const Turn> turns) const;

 private:
  struct Slots {
    std::string name;
    std::string system_before, system_after, default_system;
    bool system_closed_by_eos = false;
    std::string user_before, user_after;
    bool user_closed_by_eos = false;
    std::string assistant_before, assistant_after;
  };

  explicit PromptTemplate(Slots slots);
  Slots slots_;
};

}  // namespace zeroth::text
