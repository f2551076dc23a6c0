#include "data/alpaca.h"

#include <utility>
#include <vector>

#include "data/columns.h"
#include <fmt/format.h>

namespace zeroth::data {
namespace {

std::vector<std::string> names_of(const RowColumns& columns) {
  std::vector<std::string> names;
  for (const std::string& name :
       {columns.prompt, columns.query, columns.response, columns.system, columns.history}) {
    if (!name.empty()) {
      names.push_back(name);
    }
  }
  return names;
}

std::vector<text::Turn> history_of(ColumnReader& reader, const std::string& name) {
  std::vector<text::Turn> turns;
  const Json* const value = name.empty() ? nullptr : reader.optional_value(name);
  if (value == nullptr) {
    return turns;
  }
  if (!value->is_array()) {
    reader.complain(fmt::format(
        "\"{}\": expected list of [user, assistant] pairs, got {}", name, type_name(*value)));
    return turns;
  }
  for (const Json& pair : *value) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) {
      reader.complain(fmt::format(
          "\"{}\": entry {} is not a pair of strings [user, assistant]", name, turns.size() + 1));
      return turns;
    }
    turns.push_back({.user = pair[0].get<std::string>(), .assistant = pair[1].get<std::string>()});
  }
  return turns;
}

std::string optional(ColumnReader& reader, const std::string& name) {
  return name.empty() ? std::string() : reader.optional(name);
}

}  // namespace

Conversation parse_alpaca_row(const Json& value,
                              const RowColumns& columns,
                              Answer answer,
                              std::string& problem) {
  if (!value.is_object()) {
    problem = fmt::format("expected an object with {} and {}, got {}",
                          columns.prompt,
                          columns.response,
                          type_name(value));
    return {};
  }
  const std::vector<std::string> known = names_of(columns);
  ColumnReader reader(value, known);
  Conversation row;
  std::string question = reader.required(columns.prompt);
  if (const std::string query = optional(reader, columns.query); !query.empty()) {
    question += (question.empty() ? "" : "\n") + query;
  }
  std::string reply;
  if (!columns.response.empty()) {
    reply = answer == Answer::kRequired ? reader.required(columns.response)
                                        : reader.optional(columns.response);
  } else if (answer == Answer::kRequired) {
    reader.complain("no column is named for the answer");
  }
  row.system = optional(reader, columns.system);
  row.turns = history_of(reader, columns.history);
  row.turns.push_back({.user = std::move(question), .assistant = std::move(reply)});
  problem = reader.problem();
  return row;
}

}  // namespace zeroth::data
