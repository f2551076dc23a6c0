#pragma once

#include <string>

#include "base/json.h"
#include "data/conversation.h"
#include "data/row_schema.h"

// Rows that are lists of messages: ShareGPT's ("conversations", with "from" and "value") and
// OpenAI's ("messages", with "role" and "content"), in an object or as the bare list.
namespace zeroth::data {

[[nodiscard]] bool is_chat_row(const Json& row, const RowColumns& columns);

// An optional system message, then questions and answers in turns; the last message is an answer,
// or, where it is optional, may be a question. Whatever is wrong is said in `problem`, empty for a
// good row.
[[nodiscard]] Conversation parse_chat_row(const Json& row,
                                          const RowColumns& columns,
                                          Answer answer,
                                          std::string& problem);

}  // namespace zeroth::data
