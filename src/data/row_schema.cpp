#include "data/row_schema.h"

#include <map>

#include "base/error.h"
#include "base/text.h"
#include <fmt/format.h>

namespace zeroth::data {
namespace {

using Names = std::map<std::string, std::string*>;

Names names_of(RowColumns& columns) {
  return {{"prompt", &columns.prompt},
          {"query", &columns.query},
          {"response", &columns.response},
          {"history", &columns.history},
          {"system", &columns.system},
          {"messages", &columns.messages}};
}

[[noreturn]] void refuse(const std::string& source, const std::string& problem) {
  throw Error(
      ErrorKind::kConfig,
      fmt::format("{}: {}\n  Name what a row has: prompt, query, response, history, system, "
                  "or messages, as in prompt=question,response=answer.",
                  source,
                  problem));
}

void take(const std::string& word, const Names& names, const std::string& source) {
  const auto equals = word.find('=');
  if (equals == std::string::npos) {
    refuse(source, fmt::format("\"{}\" is not of the form name=column", word));
  }
  const std::string name(trim(word.substr(0, equals)));
  const auto found = names.find(name);
  if (found == names.end()) {
    refuse(source, fmt::format("there is nothing called \"{}\" in a row", name));
  }
  if (!found->second->empty()) {
    refuse(source, fmt::format("\"{}\" is named twice", name));
  }
  *found->second = trim(word.substr(equals + 1));
  if (found->second->empty()) {
    refuse(source, fmt::format("\"{}\" has no column", name));
  }
}

}  // namespace

RowColumns no_columns() {
  return {.prompt = "",
          .query = "",
          .response = "",
          .history = "",
          .system = "",
          .tools = "",
          .named = true};
}

RowColumns named_columns(std::span<const std::string> mapping, const std::string& source) {
  RowColumns columns = no_columns();
  const Names names = names_of(columns);
  for (const std::string& word : mapping) {
    take(word, names, source);
  }
  if (columns.messages.empty() && (columns.prompt.empty() || columns.response.empty())) {
    refuse(source, "neither prompt and response nor messages are among the columns");
  }
  if (!columns.messages.empty() && !(columns.prompt + columns.query + columns.response).empty()) {
    refuse(source, "messages hold question and answer: prompt, query and response go without them");
  }
  return columns;
}

}  // namespace zeroth::data
