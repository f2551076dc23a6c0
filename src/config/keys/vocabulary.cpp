#include "config/field.h"
#include "config/keys/forms.h"

// Tokens beside those that the model brings: LLaMA-Factory's options.
namespace zeroth::config {
namespace {

constexpr CommandSet kWithTokens = kWithRows | bit(Command::kTokenize) | bit(Command::kExport);

Declaration tokens_to_add(std::string name,
                          std::string help,
                          std::vector<std::string> ModelSettings::*member) {
  return {.name = std::move(name),
          .type = ValueType::kList,
          .default_value = Json::array(),
          .commands = kWithTokens,
          .help = std::move(help),
          .field = field(&RunConfig::model, member),
          .on_resume = OnResume::kNeedsAllow};
}

}  // namespace

Declarations vocabulary_keys() {
  return in_section(
      "Model",
      {
          tokens_to_add("add_tokens",
                        "tokens to add to the tokenizer, with commas between them. A row of the "
                        "embedding that is made for one starts at the mean of the model's rows",
                        &ModelSettings::add_tokens),
          tokens_to_add(
              "add_special_tokens",
              "the same, of tokens that are left out where special tokens are: at the end of "
              "a generated text",
              &ModelSettings::add_special_tokens),
          {.name = "resize_vocab",
           .type = ValueType::kBoolean,
           .default_value = false,
           .commands = kWithRows | bit(Command::kExport),
           .help =
               "give the embedding a row for each token that the tokenizer has; added tokens get "
               "theirs anyway",
           .field = field(&RunConfig::model, &ModelSettings::resize_vocab),
           .on_resume = OnResume::kNeedsAllow},
      });
}

}  // namespace zeroth::config
