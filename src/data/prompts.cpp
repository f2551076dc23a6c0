#include <utility>

#include "base/check.h"
#include "data/encode.h"
#include "data/load.h"
#include "data/supervised.h"
#include <fmt/format.h>

namespace zeroth::data {
namespace {

// Everything before the last answer.
std::vector<text::TokenId> prompt_ids(std::span<const text::PromptTemplate::EncodedTurn> turns) {
  std::vector<text::TokenId> ids;
  for (const auto& turn : turns) {
    ids.insert(ids.end(), turn.prompt.begin(), turn.prompt.end());
    if (&turn != &turns.back()) {
      ids.insert(ids.end(), turn.answer.begin(), turn.answer.end());
    }
  }
  return ids;
}

// A prompt cut on the right would lose the end of its question and the mark where the answer
// begins, so that whatever is generated answers something else.
std::string length_problem(std::size_t num_tokens, std::int64_t cutoff_len) {
  if (num_tokens == 0) {
    return "the prompt is empty: there is no token to generate from";
  }
  if (static_cast<std::int64_t>(num_tokens) > cutoff_len) {
    return fmt::format(
        "the prompt has {} tokens, cutoff_len is {}; shorten it or raise --cutoff_len",
        num_tokens,
        cutoff_len);
  }
  return {};
}

}  // namespace

std::vector<Prompt> load_prompts(const Sources& sources,
                                 const text::Tokenizer& tokenizer,
                                 const LoadSettings& settings,
                                 RowCounts* counts) {
  ZEROTH_CHECK(!sources.empty(), "no data files to load");
  ZEROTH_CHECK(settings.embedding_rows > 0, "embedding_rows was not given");
  const auto format = text::PromptTemplate::named(settings.prompt_template);
  SupervisedRows read = read_supervised_rows(sources, settings, Answer::kOptional);
  std::vector<Prompt> prompts;
  BadRows bad_rows;
  for (auto& [place, row] : read.rows) {
    Prompt prompt;
    prompt.ids = prompt_ids(format.encode(tokenizer, row.system, row.turns));
    if (const auto problem = length_problem(prompt.ids.size(), settings.cutoff_len);
        !problem.empty()) {
      bad_rows.add(place, problem);
      continue;
    }
    require_embedded(prompt.ids, settings.embedding_rows, tokenizer, place);
    prompt.row = static_cast<std::int64_t>(prompts.size());
    prompt.prompt = tokenizer.decode(prompt.ids, /*skip_special_tokens=*/false);
    prompt.label = std::move(row.turns.back().assistant);
    prompts.push_back(std::move(prompt));
  }
  bad_rows.raise_if_any(read.counts.read, settings.skip_bad_rows);
  read.counts.dropped_bad += bad_rows.count();
  read.counts.kept = static_cast<std::int64_t>(prompts.size());
  if (prompts.empty()) {
    refuse_empty(read.counts, sources);
  }
  if (counts != nullptr) {
    *counts = read.counts;
  }
  return prompts;
}

}  // namespace zeroth::data
