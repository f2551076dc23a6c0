#include "text/prompt_template.h"

#include <utility>

#include "base/error.h"
#include "base/text.h"
#include <fmt/format.h>

namespace zeroth::text {
namespace {

void append(std::vector<TokenId>& to, const std::vector<TokenId>& ids) {
  to.insert(to.end(), ids.begin(), ids.end());
}

void append_text(std::vector<TokenId>& to, const Tokenizer& tokenizer, std::string_view text) {
  append(to, tokenizer.encode(text, false));
}

TokenId require_end_token(const Tokenizer& tokenizer) {
  if (const auto end = tokenizer.eos_id()) {
    return *end;
  }
  throw Error(
      ErrorKind::kModel,
      "the tokenizer has no end token (eos_token), so an answer could never be closed.\n"
      "  Name one of its tokens as \"eos_token\" in the model folder's tokenizer_config.json.");
}

}  // namespace

PromptTemplate::PromptTemplate(Format format) : format_(std::move(format)) {
}

const std::vector<PromptTemplate::Format>& PromptTemplate::formats() {
  static const std::vector<Format> kFormats = {
      {.name = "alpaca",
       .default_system = "Below is an instruction that describes a task. "
                         "Write a response that appropriately completes the request.",
       .system = {.before = "", .after = "\n\n", .end_token = false, .after_end = ""},
       .user = {.before = "### Instruction:\n",
                .after = "\n\n### Response:\n",
                .end_token = false,
                .after_end = ""},
       .between_turns = "\n\n"},
      {.name = "default",
       .default_system = "",
       .system = {.before = "System: ", .after = "", .end_token = true, .after_end = "\n"},
       .user = {.before = "Human: ", .after = "", .end_token = true, .after_end = "\nAssistant:"},
       .between_turns = "\n"},
      {.name = "empty", .default_system = "", .system = {}, .user = {}, .between_turns = ""},
  };
  return kFormats;
}

std::vector<std::string> PromptTemplate::names() {
  std::vector<std::string> names;
  for (const Format& format : formats()) {
    names.push_back(format.name);
  }
  return names;
}

PromptTemplate PromptTemplate::named(std::string_view name) {
  for (const Format& format : formats()) {
    if (format.name == name) {
      return PromptTemplate(format);
    }
  }
  throw Error(ErrorKind::kConfig,
              fmt::format("there is no template \"{}\"; there are {}", name, join(names(), ", ")));
}

std::vector<PromptTemplate::EncodedTurn> PromptTemplate::encode(const Tokenizer& tokenizer,
                                                                std::string_view system,
                                                                std::span<const Turn> turns) const {
  const TokenId end_token = require_end_token(tokenizer);
  const auto append_slot =
      [&](std::vector<TokenId>& to, const Slot& slot, std::string_view content) {
        append_text(to, tokenizer, fmt::format("{}{}{}", slot.before, content, slot.after));
        if (slot.end_token) {
          to.push_back(end_token);
          append_text(to, tokenizer, slot.after_end);
        }
      };

  std::vector<EncodedTurn> encoded;
  std::vector<TokenId> prompt = tokenizer.prefix_ids();
  const std::string_view system_text =
      system.empty() ? std::string_view(format_.default_system) : system;
  if (!system_text.empty()) {
    append_slot(prompt, format_.system, system_text);
  }
  for (const Turn& turn : turns) {
    append_slot(prompt, format_.user, turn.user);
    std::vector<TokenId> answer = tokenizer.encode(turn.assistant, false);
    answer.push_back(end_token);
    const std::size_t num_targets = answer.size();
    encoded.push_back({std::exchange(prompt, {}), std::move(answer), num_targets});
    append_text(prompt, tokenizer, format_.between_turns);
  }
  return encoded;
}

}  // namespace zeroth::text
