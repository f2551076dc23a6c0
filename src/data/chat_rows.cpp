#include "data/chat_rows.h"

#include <array>
#include <map>
#include <optional>

#include "data/columns.h"
#include <fmt/format.h>

namespace zeroth::data {
namespace {

enum class Role { kSystem, kUser, kAssistant, kTool };

std::optional<Role> role_named(const std::string& name) {
  static const std::map<std::string, Role> kRoles{
      {"system", Role::kSystem},
      {"developer", Role::kSystem},
      {"user", Role::kUser},
      {"human", Role::kUser},
      {"assistant", Role::kAssistant},
      {"gpt", Role::kAssistant},
      {"model", Role::kAssistant},
      {"tool", Role::kTool},
      {"function", Role::kTool},
      {"observation", Role::kTool},
      {"function_call", Role::kTool},
  };
  const auto found = kRoles.find(name);
  return found == kRoles.end() ? std::nullopt : std::optional(found->second);
}

struct Message {
  Role role = Role::kUser;
  std::string content;
};

const Json* messages_in(const Json& row, const RowColumns& columns) {
  if (row.is_array()) {
    return &row;
  }
  const std::array<std::string, 2> usual{"messages", "conversations"};
  for (const std::string& name : columns.messages.empty() ? std::vector(usual.begin(), usual.end())
                                                          : std::vector{columns.messages}) {
    if (row.is_object() && row.contains(name)) {
      return &row[name];
    }
  }
  return nullptr;
}

// The text of a message: a string, or OpenAI's list of parts where all of them are text.
std::string content_of(const Json& value, std::string& problem) {
  if (value.is_string()) {
    return value.get<std::string>();
  }
  if (!value.is_array()) {
    problem = fmt::format("its content: expected string, got {}", type_name(value));
    return {};
  }
  std::string text;
  for (const Json& part : value) {
    if (!has_all(part, {"type", "text"}) || part["type"] != "text" || !part["text"].is_string()) {
      problem = "its content has a part that is not text";
      return {};
    }
    text += part["text"].get<std::string>();
  }
  return text;
}

// What cannot be trained on as it is meant.
std::string unsupported_in(const Json& message) {
  if (message.contains("tool_calls") && !message["tool_calls"].is_null() &&
      !message["tool_calls"].empty()) {
    return "calls of tools (\"tool_calls\") are not supported yet";
  }
  if (message.contains("weight") && message["weight"] != 1) {
    return "a \"weight\" other than 1 is not supported yet";
  }
  return {};
}

// Where a message has its role and content, or what is missing.
struct Places {
  const Json* role = nullptr;
  const Json* content = nullptr;
  std::string problem;
};

Places places_in(const Json& message, const std::optional<RowTags>& tags) {
  const auto found = [&](const std::string& role, const std::string& content) {
    return has_all(message, {role, content}) ? Places{&message[role], &message[content], {}}
                                             : Places{};
  };
  if (tags) {
    Places places = found(tags->role, tags->content);
    places.problem = places.role == nullptr
                         ? fmt::format("expected \"{}\" and \"{}\"", tags->role, tags->content)
                         : "";
    return places;
  }
  Places places = found("role", "content");
  places = places.role == nullptr ? found("from", "value") : places;
  places.problem =
      places.role == nullptr ? "expected \"role\" and \"content\", or \"from\" and \"value\"" : "";
  return places;
}

std::optional<Role> role_of(const Json& name, const std::optional<RowTags>& tags) {
  if (!name.is_string() || name.get<std::string>().empty()) {
    return std::nullopt;
  }
  if (!tags) {
    return role_named(name.get<std::string>());
  }
  return name == tags->user                                    ? std::optional(Role::kUser)
         : name == tags->assistant                             ? std::optional(Role::kAssistant)
         : name == tags->system                                ? std::optional(Role::kSystem)
         : name == tags->observation || name == tags->function ? std::optional(Role::kTool)
                                                               : std::nullopt;
}

Message read_message(const Json& value, const std::optional<RowTags>& tags, std::string& problem) {
  const Places places = places_in(value, tags);
  if (places.role == nullptr) {
    problem = places.problem;
    return {};
  }
  const Json& name = *places.role;
  const auto role = role_of(name, tags);
  if (!role) {
    problem = fmt::format("there is no role {}", name.dump());
    return {};
  }
  problem = *role == Role::kTool ? fmt::format("the role {} is not supported yet", name.dump())
                                 : unsupported_in(value);
  return problem.empty() ? Message{*role, content_of(*places.content, problem)} : Message{};
}

// Puts messages together, and says where one comes out of turn.
class Turns {
 public:
  explicit Turns(Conversation& conversation) : conversation_(conversation) {}

  // Empty where it may come here.
  std::string add(Message message, bool is_first) {
    switch (message.role) {
      case Role::kSystem:
        if (!is_first) {
          return "a system message may only come first";
        }
        conversation_.system = std::move(message.content);
        return {};
      case Role::kUser:
        if (open_) {
          return "two questions follow each other; an answer was expected";
        }
        conversation_.turns.push_back({.user = std::move(message.content), .assistant = {}});
        open_ = true;
        return {};
      default:
        if (!open_) {
          return "an answer without a question before it";
        }
        conversation_.turns.back().assistant = std::move(message.content);
        open_ = false;
        return {};
    }
  }

  [[nodiscard]] bool open() const { return open_; }

 private:
  Conversation& conversation_;
  bool open_ = false;
};

std::string read_messages(const Json& messages,
                          const std::optional<RowTags>& tags,
                          Answer answer,
                          Conversation& conversation) {
  Turns turns(conversation);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    std::string problem;
    Message message = read_message(messages[i], tags, problem);
    if (problem.empty()) {
      problem = turns.add(std::move(message), i == 0);
    }
    if (!problem.empty()) {
      return fmt::format("message {}: {}", i + 1, problem);
    }
  }
  if (conversation.turns.empty()) {
    return "there is no question among the messages";
  }
  return turns.open() && answer == Answer::kRequired
             ? "the last message is a question; an answer was expected"
             : "";
}

std::string unsupported_beside(const Json& row, const RowColumns& columns) {
  const auto said = [&](const std::string& name) {
    return !name.empty() && row.is_object() && row.contains(name) && !row[name].is_null() &&
           !row[name].empty() && row[name] != "[]";
  };
  const std::vector<std::string> elsewhere{"functions", "images", "videos", "audios"};
  std::vector<std::string> names{columns.tools};
  if (!columns.named) {
    names.insert(names.end(), elsewhere.begin(), elsewhere.end());
  }
  for (const std::string& name : names) {
    if (said(name)) {
      return fmt::format("\"{}\" are not supported yet", name);
    }
  }
  return {};
}

}  // namespace

bool is_chat_row(const Json& row, const RowColumns& columns) {
  if (columns.named) {
    return !columns.messages.empty();
  }
  return row.is_array() || messages_in(row, columns) != nullptr;
}

Conversation parse_chat_row(const Json& row,
                            const RowColumns& columns,
                            Answer answer,
                            std::string& problem) {
  const Json* const messages = messages_in(row, columns);
  if (messages == nullptr) {
    problem = fmt::format("missing \"{}\"", columns.messages);
    return {};
  }
  if (!messages->is_array()) {
    problem = fmt::format("expected a list of messages, got {}", type_name(*messages));
    return {};
  }
  problem = unsupported_beside(row, columns);
  if (!problem.empty()) {
    return {};
  }
  Conversation conversation;
  if (!columns.system.empty() && row.is_object()) {  // a system message comes before it
    const std::array known{columns.system};
    ColumnReader reader(row, known);
    conversation.system = reader.optional(columns.system);
    problem = reader.problem();
  }
  if (problem.empty()) {
    problem = read_messages(*messages, columns.tags, answer, conversation);
  }
  return conversation;
}

}  // namespace zeroth::data
