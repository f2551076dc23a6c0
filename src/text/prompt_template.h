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
    // Everything before the answer: BOS and system text in the first turn, what separates the turns
    // in later ones.
    std::vector<TokenId> prompt;
    std::vector<TokenId> answer;  // closed by the end token, with nothing behind it
    std::size_t num_answer_targets =
        0;  // leading ids of `answer` that are trained: all, the end token included
  };

  // All turns in order. An empty `system` means the format's own system text, if it has one.
  // Generation leaves out the last turn's `answer`. kModel where the tokenizer has no end token.
  [[nodiscard]] std::vector<EncodedTurn> encode(const Tokenizer& tokenizer,
                                                std::string_view system,
                                                std::span<const Turn> turns) const;

 private:
  // Text put around what the user gives, and whether the end token follows before `after_end`.
  struct Slot {
    std::string before, after;
    bool end_token = false;
    std::string after_end;
  };

  struct Format {
    std::string name;
    std::string default_system;
    Slot system;
    Slot user;
    std::string between_turns;  // after an answer's end token, where another turn follows
  };

  explicit PromptTemplate(Format format);
  static const std::vector<Format>& formats();
  Format format_;
};

}  // namespace zeroth::text
