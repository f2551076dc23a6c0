#pragma once

#include <cstdint>

#include "data/example.h"

namespace zeroth::data {

// Joins whole rows into longer ones of at most `row_tokens`, so that little is padding. Joined rows
// do not see each other: Example::begins says where each begins, and none predicts the next one's
// first token. Each goes, longest first, where it leaves the least room (best fit decreasing); rows
// keep their order within a joined one, and these that of their first rows. Row numbers, totals and
// the fingerprint become those of the joined rows.
void join_rows(Dataset& dataset, std::int64_t row_tokens);

}  // namespace zeroth::data
