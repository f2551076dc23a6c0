#include "data/rows.h"

#include <array>

#include "base/text.h"
#include "data/alpaca.h"
#include "data/chat_rows.h"
#include "data/columns.h"
#include <fmt/format.h>

namespace zeroth::data {
namespace {

const std::array<std::string, 5> kAlpaca{"instruction", "input", "output", "system", "history"};

bool is_prompt_completion(const Json& row, const RowColumns& columns) {
  return !columns.named && has_all(row, {"prompt", "completion"});
}

RowColumns prompt_completion() {
  RowColumns columns = no_columns();
  columns.prompt = "prompt";
  columns.response = "completion";
  columns.system = "system";
  return columns;
}

bool near_alpaca(const Json& row) {
  const auto unknown = unknown_columns(row, kAlpaca);
  return row.contains("instruction") || row.contains("output") ||
         !nearest("instruction", unknown, 1).empty() || !nearest("output", unknown, 1).empty();
}

std::string quoted_names(const Json& row) {
  std::vector<std::string> names;
  for (const auto& item : row.items()) {
    names.push_back(fmt::format("\"{}\"", item.key()));
  }
  return join(names, ", ");
}

}  // namespace

Conversation parse_row(const Json& row,
                       const RowColumns& columns,
                       Answer answer,
                       std::string& problem) {
  if (is_chat_row(row, columns)) {
    return parse_chat_row(row, columns, answer, problem);
  }
  return parse_alpaca_row(
      row, is_prompt_completion(row, columns) ? prompt_completion() : columns, answer, problem);
}

std::string parse_text_row(const Json& row, const std::string& column, std::string& problem) {
  if (!row.is_object()) {
    problem = fmt::format("expected an object with \"{}\", got {}", column, type_name(row));
    return {};
  }
  const std::array known{column};
  ColumnReader reader(row, known);
  std::string text = reader.required(column);
  problem = reader.problem();
  return text;
}

std::string foreign_to_supervised(const Json& first_row) {
  if (!first_row.is_object() || is_chat_row(first_row, {}) || near_alpaca(first_row)) {
    return {};
  }
  if (has_all(first_row, {"chosen", "rejected"})) {
    return "preference rows (\"chosen\", \"rejected\") are not supported";
  }
  if (has_all(first_row, {"text"})) {
    return "rows with a \"text\" column are for pre-training\n  Train on them with --stage pt.";
  }
  return fmt::format(
      "the columns are {}, which is no format that is known\n  Say which hold "
      "question and answer, as in --dataset_columns prompt=question,response=answer.",
      quoted_names(first_row));
}

std::string foreign_to_pretraining(const Json& first_row) {
  const std::array<std::string, 1> known{"text"};
  if (has_all(first_row, {"text"}) ||
      (first_row.is_object() && !nearest("text", unknown_columns(first_row, known), 1).empty())) {
    return {};
  }
  if (has_all(first_row, {"instruction", "output"})) {
    return "alpaca rows are for supervised training\n  Train on them with --stage sft, or give "
           "rows with a \"text\" column.";
  }
  if (is_chat_row(first_row, {})) {
    return "chats are for supervised training\n  Train on them with --stage sft, or give plain "
           "text "
           "(.txt) or rows with a \"text\" column.";
  }
  return {};
}

}  // namespace zeroth::data
