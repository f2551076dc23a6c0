#include "data/alpaca.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include <fmt/format.h>

namespace zeroth::data {
namespace {

constexpr std::array<std::string_view, 5> kColumns{
    "instruction", "input", "output", "system", "history"};

std::vector<std::string> unknown_columns(const Json& row) {
  std::vector<std::string> names;
  for (const auto& item : row.items()) {
    if (std::find(kColumns.begin(), kColumns.end(), item.key()) == kColumns.end()) {
      names.push_back(item.key());
    }
  }
  return names;
}

// Reads the columns of one row and gathers what is wrong with them.
class RowReader {
 public:
  explicit RowReader(const Json& row) : row_(row), unknown_(unknown_columns(row)) {}

  std::string required(const std::string& name) {
    if (!row_.contains(name)) {
      const auto similar = nearest(name, unknown_, 1);
      problems_.push_back(
          fmt::format("missing \"{}\"{}",
                      name,
                      similar.empty() ? "" : fmt::format(" (found \"{}\")", similar[0])));
      return {};
    }
    return as_string(row_[name], name);
  }

  // An absent column and null are both "nothing". Here one letter of difference counts as a
  // misspelling: other columns are welcome.
  std::string optional(const std::string& name) {
    const Json* value = optional_value(name);
    return value == nullptr ? std::string() : as_string(*value, name);
  }

  std::vector<text::Turn> history() {
    const Json* value = optional_value("history");
    std::vector<text::Turn> turns;
    if (value == nullptr) {
      return turns;
    }
    if (!value->is_array()) {
      problems_.push_back(fmt::format(
          "\"history\": expected list of [user, assistant] pairs, got {}", type_name(*value)));
      return turns;
    }
    for (const Json& pair : *value) {
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) {
        problems_.push_back(fmt::format(
            "\"history\": entry {} is not a pair of strings [user, assistant]", turns.size() + 1));
        return turns;
      }
      turns.push_back(
          {.user = pair[0].get<std::string>(), .assistant = pair[1].get<std::string>()});
    }
    return turns;
  }

  [[nodiscard]] std::string problem() const { return join(problems_, "; "); }

 private:
  const Json* optional_value(const std::string& name) {
    if (row_.contains(name)) {
      return row_[name].is_null() ? nullptr : &row_[name];
    }
    for (const std::string& other : unknown_) {
      if (edit_distance(name, other) == 1) {
        problems_.push_back(fmt::format("no column \"{}\"; \"{}\" was meant?", other, name));
      }
    }
    return nullptr;
  }

  std::string as_string(const Json& value, const std::string& name) {
    if (!value.is_string()) {
      problems_.push_back(fmt::format("\"{}\": expected string, got {}", name, type_name(value)));
      return {};
    }
    return value.get<std::string>();
  }

  const Json& row_;
  std::vector<std::string> unknown_;
  std::vector<std::string> problems_;
};

std::string not_an_object(const Json& value) {
  return fmt::format("expected an object with instruction and output, got {}", type_name(value));
}

bool has_all(const Json& row, std::initializer_list<const char*> names) {
  return row.is_object() && std::all_of(names.begin(), names.end(), [&](const char* name) {
           return row.contains(name);
         });
}

// Chats come as an object with a list of messages, or as that list itself.
std::string chat_format(const Json& row) {
  const bool list = row.is_array() && !row.empty();
  if (has_all(row, {"conversations"}) || (list && has_all(row[0], {"from", "value"}))) {
    return "sharegpt rows (\"conversations\") are not supported yet";
  }
  if (has_all(row, {"messages"}) || (list && has_all(row[0], {"role", "content"}))) {
    return "OpenAI messages rows (\"messages\") are not supported yet";
  }
  return {};
}

bool near_alpaca(const Json& row) {
  const auto unknown = unknown_columns(row);
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

constexpr std::string_view kConvert =
    "\n  Convert them to alpaca rows: instruction, input, output, with earlier turns in history.";

}  // namespace

AlpacaRow parse_alpaca_row(const Json& value, Answer answer, std::string& problem) {
  if (!value.is_object()) {
    problem = not_an_object(value);
    return {};
  }
  RowReader reader(value);
  AlpacaRow row;
  std::string question = reader.required("instruction");
  if (const std::string input = reader.optional("input"); !input.empty()) {
    question += (question.empty() ? "" : "\n") + input;
  }
  std::string reply =
      answer == Answer::kRequired ? reader.required("output") : reader.optional("output");
  row.system = reader.optional("system");
  row.turns = reader.history();
  row.turns.push_back({.user = std::move(question), .assistant = std::move(reply)});
  problem = reader.problem();
  return row;
}

std::string foreign_to_alpaca(const Json& first_row) {
  if (const std::string chat = chat_format(first_row); !chat.empty()) {
    return chat + std::string(kConvert);
  }
  if (!first_row.is_object() || near_alpaca(first_row)) {
    return {};
  }
  if (has_all(first_row, {"chosen", "rejected"})) {
    return "preference rows (\"chosen\", \"rejected\") are not supported";
  }
  if (has_all(first_row, {"text"})) {
    return "rows with a \"text\" column are for pre-training\n  Train on them with --stage pt.";
  }
  return fmt::format("the columns are {}; mapping columns is not supported yet{}",
                     quoted_names(first_row),
                     kConvert);
}

std::string foreign_to_pretraining(const Json& first_row) {
  if (has_all(first_row, {"text"}) ||
      (first_row.is_object() && !nearest("text", unknown_columns(first_row), 1).empty())) {
    return {};
  }
  if (has_all(first_row, {"instruction", "output"})) {
    return "alpaca rows are for supervised training\n  Train on them with --stage sft, or give "
           "rows with a "
           "\"text\" column.";
  }
  if (const std::string chat = chat_format(first_row); !chat.empty()) {
    return chat + "\n  Pre-training takes plain text (.txt) or rows with a \"text\" column.";
  }
  return {};
}

std::string parse_text_row(const Json& value, std::string& problem) {
  if (!value.is_object()) {
    problem = fmt::format("expected an object with \"text\", got {}", type_name(value));
    return {};
  }
  RowReader reader(value);
  std::string text = reader.required("text");
  problem = reader.problem();
  return text;
}

}  // namespace zeroth::data
