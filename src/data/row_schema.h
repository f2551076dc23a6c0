#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace zeroth::data {

// How messages spell what they are; empty: not at all. LLaMA-Factory's `tags`.
struct RowTags {
  std::string role, content;            // keys of a message
  std::string user, assistant, system;  // values of its role
  std::string observation, function;    // of tools, which are refused
  friend bool operator==(const RowTags&, const RowTags&) = default;
};

// Under which names a row has what; empty: under none. LLaMA-Factory's `columns`, with its defaults
// for rows whose columns nobody named.
struct RowColumns {
  std::string prompt = "instruction";
  std::string query = "input";
  std::string response = "output";
  std::string history = "history";
  std::string system = "system";
  std::string messages;  // empty: "messages" or "conversations", whichever is there
  std::string tools = "tools";
  std::optional<RowTags> tags;  // nullopt: the usual spellings
  bool named = false;           // by the user, so that nothing is guessed from a row

  friend bool operator==(const RowColumns&, const RowColumns&) = default;
};

[[nodiscard]] RowColumns no_columns();  // named, and none there

// The columns that `mapping` names ("prompt=question", "response=answer"): all others are absent.
// kConfig for a word without "=", an unknown or repeated name, and a mapping of neither prompt and
// response nor messages; `source` says where it stands.
[[nodiscard]] RowColumns named_columns(std::span<const std::string> mapping,
                                       const std::string& source);

}  // namespace zeroth::data
