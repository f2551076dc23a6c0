#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "data/bad_rows.h"
#include "data/example.h"
#include "data/load.h"
#include "data/trains.h"
#include "text/prompt_template.h"
#include "text/tokenizer.h"

namespace zeroth::data {

// Joins a row's turns and cuts them to cutoff_len, turn by turn from the first one, or, where only
// the last answer is trained, from the last one; tokens cut are added to `tokens_cut`.
[[nodiscard]] Example join_turns(std::span<const text::PromptTemplate::EncodedTurn> turns,
                                 std::int64_t cutoff_len,
                                 Trains trains,
                                 std::int64_t& tokens_cut);

// kModel for the first id that has no row in the embedding (case D15).
void require_embedded(std::span<const text::TokenId> ids,
                      std::int64_t embedding_rows,
                      const text::Tokenizer& tokenizer,
                      const RowPlace& place);

// kData with what became of the rows.
[[noreturn]] void refuse_empty(const RowCounts& counts, const Sources& sources);

// Row numbers, totals and fingerprint.
void number_rows(Dataset& dataset);

// The same; kData with the counts where no row is left.
void finish_dataset(Dataset& dataset, const Sources& sources);

}  // namespace zeroth::data
