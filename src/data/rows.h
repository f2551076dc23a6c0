#pragma once

#include <string>

#include "base/json.h"
#include "data/conversation.h"
#include "data/row_schema.h"

// One row of a data file, of whatever format it is.
namespace zeroth::data {

// A supervised row. Where no columns are named, its own tell its format: messages (chat_rows.h),
// prompt and completion, or alpaca's. What is wrong is said in `problem`, empty for a good row.
[[nodiscard]] Conversation parse_row(const Json& row,
                                     const RowColumns& columns,
                                     Answer answer,
                                     std::string& problem);

// The text of a pre-training row.
[[nodiscard]] std::string parse_text_row(const Json& row,
                                         const std::string& column,
                                         std::string& problem);

// For the first row of a file in which none is good: what it is and what to do; empty where that is
// not known.
[[nodiscard]] std::string foreign_to_supervised(const Json& first_row);
[[nodiscard]] std::string foreign_to_pretraining(const Json& first_row);

}  // namespace zeroth::data
