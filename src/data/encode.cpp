#include "data/encode.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "data/truncation.h"
#include <fmt/format.h>

namespace zeroth::data {
namespace {

using EncodedTurn = text::PromptTemplate::EncodedTurn;

TurnLengths lengths_of(const EncodedTurn& turn) {
  return {.prompt = static_cast<std::int64_t>(turn.prompt.size()),
          .answer = static_cast<std::int64_t>(turn.answer.size())};
}

void append_turn(
    Example& example, const EncodedTurn& turn, TurnLengths kept, Trains trains, bool is_last) {
  const auto append =
      [&](const std::vector<text::TokenId>& ids, std::int64_t count, std::int64_t trained) {
        example.input_ids.insert(example.input_ids.end(), ids.begin(), ids.begin() + count);
        example.labels.insert(example.labels.end(), ids.begin(), ids.begin() + trained);
        example.labels.resize(example.input_ids.size(), kIgnoreLabel);
      };
  const bool answered = trains != Trains::kLastAnswer || is_last;
  const auto targets = answered ? static_cast<std::int64_t>(turn.num_answer_targets) : 0;
  append(turn.prompt, kept.prompt, trains == Trains::kEverything ? kept.prompt : 0);
  append(turn.answer, kept.answer, std::min(kept.answer, targets));
}

// The turn that is trained for certain has the first claim on the room.
std::vector<TurnLengths> fit_turns(std::span<const EncodedTurn> turns,
                                   std::int64_t cutoff_len,
                                   Trains trains) {
  std::vector<TurnLengths> kept(turns.size());
  std::int64_t budget = cutoff_len;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const std::size_t turn = trains == Trains::kLastAnswer ? turns.size() - 1 - i : i;
    kept[turn] = fit_turn(lengths_of(turns[turn]), budget);
    budget -= kept[turn].prompt + kept[turn].answer;
  }
  return kept;
}

// FNV-1a over 32-bit words.
class Fingerprint {
 public:
  void add(std::int64_t word) noexcept {
    hash_ = (hash_ ^ static_cast<std::uint32_t>(word)) * 0x100000001b3U;
  }

  void add(std::span<const text::TokenId> ids) noexcept {
    add(static_cast<std::int64_t>(ids.size()));  // borders between rows count as well
    for (const text::TokenId id : ids) {
      add(std::int64_t{id});
    }
  }

  // Spreads the last words over all bits (the finaliser of splitmix64).
  [[nodiscard]] std::uint64_t value() const noexcept {
    std::uint64_t mixed = (hash_ ^ (hash_ >> 30U)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31U);
  }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

}  // namespace

Example join_turns(std::span<const EncodedTurn> turns,
                   std::int64_t cutoff_len,
                   Trains trains,
                   std::int64_t& tokens_cut) {
  const std::vector<TurnLengths> kept = fit_turns(turns, cutoff_len, trains);
  Example example;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const TurnLengths full = lengths_of(turns[i]);
    append_turn(example, turns[i], kept[i], trains, i + 1 == turns.size());
    tokens_cut += full.prompt + full.answer - kept[i].prompt - kept[i].answer;
  }
  return example;
}

void require_embedded(std::span<const text::TokenId> ids,
                      std::int64_t embedding_rows,
                      const text::Tokenizer& tokenizer,
                      const RowPlace& place) {
  const auto beyond =
      std::find_if(ids.begin(), ids.end(), [&](text::TokenId id) { return id >= embedding_rows; });
  if (beyond == ids.end()) {
    return;
  }
  throw Error(ErrorKind::kModel,
              fmt::format("token id {} (\"{}\") >= embedding rows {}, row {} of {}\n  The "
                          "tokenizer and the model do not belong together: use the tokenizer files "
                          "of this model's folder. Or give each token a row: --resize_vocab true.",
                          *beyond,
                          tokenizer.token_of(*beyond),
                          embedding_rows,
                          place.number,
                          place.file->string()));
}

void refuse_empty(const RowCounts& counts, const Sources& sources) {
  std::vector<std::string> names;
  for (const Source& source : sources) {
    names.push_back(source.file.string());
  }
  throw Error(
      ErrorKind::kData,
      fmt::format(
          "no usable row in {}\n  Of {} rows read, {} were bad (--skip_bad_rows), {} had an empty "
          "answer or text, {} had no target token left within cutoff_len.\n  Check the file, or "
          "raise "
          "--cutoff_len.",
          join(names, ", "),
          counts.read,
          counts.dropped_bad,
          counts.dropped_empty,
          counts.dropped_unlabelled));
}

void number_rows(Dataset& dataset) {
  Fingerprint fingerprint;
  std::int64_t row = 0;
  dataset.num_tokens = 0;
  dataset.num_targets = 0;
  for (Example& example : dataset.examples) {
    example.row = row++;
    dataset.num_tokens += static_cast<std::int64_t>(example.input_ids.size());
    dataset.num_targets += example.num_targets();
    fingerprint.add(example.input_ids);
    fingerprint.add(example.labels);
    for (const std::int64_t begin : example.begins) {
      fingerprint.add(begin);
    }
  }
  dataset.fingerprint = fingerprint.value();
}

void finish_dataset(Dataset& dataset, const Sources& sources) {
  if (dataset.examples.empty()) {
    refuse_empty(dataset.counts, sources);
  }
  number_rows(dataset);
}

}  // namespace zeroth::data
