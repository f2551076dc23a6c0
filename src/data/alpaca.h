#pragma once

#include <string>

#include "base/json.h"
#include "data/conversation.h"
#include "data/row_schema.h"

// Rows whose columns hold question and answer: alpaca's instruction, input, output, and optionally
// system and history, or whatever columns are named for them.
namespace zeroth::data {

// Reads one row. Whatever is wrong with it is said in `problem`, empty for a good row. Columns of
// other names are left alone, unless a name looks like a misspelt column that is missing.
[[nodiscard]] Conversation parse_alpaca_row(const Json& value,
                                            const RowColumns& columns,
                                            Answer answer,
                                            std::string& problem);

}  // namespace zeroth::data
