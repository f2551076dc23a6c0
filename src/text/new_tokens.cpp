#include "text/new_tokens.h"

#include <algorithm>

#include "base/file.h"
#include "text/tokenizer_state.h"
#include <nlohmann/json.hpp>

namespace zeroth::text {

std::string tokenizer_json_with(const std::filesystem::path& folder, const NewTokens& tokens) {
  const auto state = Tokenizer::State::load(folder, tokens);
  // The type with sorted keys: a vocabulary of 100,000 entries is found again in time.
  nlohmann::json file =
      nlohmann::json::parse(read_file(folder / "tokenizer.json", ErrorKind::kModel));
  nlohmann::json& added = file["added_tokens"];
  for (const AddedToken& token : state->new_tokens) {
    const auto same = std::find_if(added.begin(), added.end(), [&](const nlohmann::json& entry) {
      return entry.at("id") == token.id;
    });
    if (same != added.end()) {
      (*same)["special"] = token.special;
      continue;
    }
    added.push_back({{"id", token.id},
                     {"content", token.content},
                     {"single_word", token.single_word},
                     {"lstrip", token.lstrip},
                     {"rstrip", token.rstrip},
                     {"normalized", token.normalized},
                     {"special", token.special}});
  }
  return file.dump(2) + "\n";
}

}  // namespace zeroth::text
