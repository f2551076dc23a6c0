#include "data/rows.h"

#include "base/error.h"
#include "data/test_support.h"
#include <gtest/gtest.h>

// Rows of every format, good and bad.
namespace zeroth::data {
namespace {

using test::error_of;

Conversation row_of(const std::string& json,
                    const RowColumns& columns = {},
                    Answer answer = Answer::kRequired) {
  std::string problem;
  Conversation row = parse_row(Json::parse(json), columns, answer, problem);
  EXPECT_EQ(problem, "") << json;
  return row;
}

std::string problem_of(const std::string& json,
                       const RowColumns& columns = {},
                       Answer answer = Answer::kRequired) {
  std::string problem;
  (void)parse_row(Json::parse(json), columns, answer, problem);
  return problem;
}

void expect_turns(const Conversation& row,
                  const std::vector<std::pair<std::string, std::string>>& turns) {
  ASSERT_EQ(row.turns.size(), turns.size());
  for (std::size_t i = 0; i < turns.size(); ++i) {
    EXPECT_EQ(row.turns[i].user, turns[i].first);
    EXPECT_EQ(row.turns[i].assistant, turns[i].second);
  }
}

TEST(Rows, ChatsOfBothSpellingsWithAndWithoutAnObjectAround) {
  const std::string openai =
      R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
          {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}])";
  const std::string sharegpt =
      R"([{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"},
          {"from": "human", "value": "c"}, {"from": "gpt", "value": "d"}])";
  for (const std::string& row : {openai,
                                 sharegpt,
                                 R"({"messages": )" + openai + "}",
                                 R"({"id": 3, "conversations": )" + sharegpt + "}"}) {
    expect_turns(row_of(row), {{"a", "b"}, {"c", "d"}});
  }
}

TEST(Rows, ASystemMessageComesBeforeTheColumn) {
  const std::string chat =
      R"({"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])";
  EXPECT_EQ(row_of(R"({"system": "s", "messages": [)" + chat + "}").system, "s");
  const std::string both =
      R"({"system": "s", "messages": [{"role": "system", "content": "t"}, )" + chat + "}";
  EXPECT_EQ(row_of(both).system, "t");
  EXPECT_EQ(row_of(R"([{"role": "developer", "content": "t"}, )" + chat).system, "t");
}

TEST(Rows, PartsOfAMessageThatAreTextAreJoined) {
  const std::string parts =
      R"([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
          {"role": "assistant", "content": "c"}])";
  expect_turns(row_of(parts), {{"ab", "c"}});
  EXPECT_EQ(
      problem_of(R"([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}])"),
      "message 1: its content has a part that is not text");
}

TEST(Rows, MessagesOutOfTurnAreNamed) {
  const auto chat = [](const std::string& roles) {
    Json messages = Json::array();
    for (const char role : roles) {
      const char* const name = role == 'u' ? "user" : role == 'a' ? "assistant" : "system";
      messages.push_back({{"role", name}, {"content", "x"}});
    }
    return messages.dump();
  };
  EXPECT_EQ(problem_of(chat("uu")),
            "message 2: two questions follow each other; an answer was expected");
  EXPECT_EQ(problem_of(chat("a")), "message 1: an answer without a question before it");
  EXPECT_EQ(problem_of(chat("uaa")), "message 3: an answer without a question before it");
  EXPECT_EQ(problem_of(chat("usa")), "message 2: a system message may only come first");
  EXPECT_EQ(problem_of(chat("uau")), "the last message is a question; an answer was expected");
  EXPECT_EQ(problem_of(chat("s")), "there is no question among the messages");
  EXPECT_EQ(problem_of("[]"), "there is no question among the messages");
  expect_turns(row_of(chat("uau"), {}, Answer::kOptional), {{"x", "x"}, {"x", ""}});
}

TEST(Rows, WhatCannotBeTrainedAsMeantIsRefusedByName) {
  EXPECT_EQ(problem_of(R"([{"role": "tool", "content": "x"}])"),
            R"(message 1: the role "tool" is not supported yet)");
  EXPECT_EQ(problem_of(R"([{"role": "narrator", "content": "x"}])"),
            R"(message 1: there is no role "narrator")");
  EXPECT_EQ(problem_of(R"([{"role": 3, "content": "x"}])"), "message 1: there is no role 3");
  EXPECT_EQ(problem_of(R"([{"role": "user"}])"),
            R"(message 1: expected "role" and "content", or "from" and "value")");
  EXPECT_EQ(problem_of(R"([{"role": "user", "content": null}])"),
            "message 1: its content: expected string, got null");
  EXPECT_EQ(problem_of(R"([{"role": "user", "content": "x", "weight": 0}])"),
            R"(message 1: a "weight" other than 1 is not supported yet)");
  EXPECT_EQ(problem_of(R"([{"role": "user", "content": "x"},
                     {"role": "assistant", "content": "", "tool_calls": [{"id": 1}]}])"),
            R"(message 2: calls of tools ("tool_calls") are not supported yet)");
  const std::string good = R"([{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}])";
  EXPECT_EQ(problem_of(R"({"conversations": )" + good + R"(, "tools": "[{}]"})"),
            R"("tools" are not supported yet)");
  EXPECT_EQ(problem_of(R"({"conversations": )" + good + R"(, "tools": "[]"})"), "");
  EXPECT_EQ(problem_of(R"({"messages": "a"})"), "expected a list of messages, got string");
}

TEST(Rows, PromptAndCompletion) {
  expect_turns(row_of(R"({"prompt": "a", "completion": "b"})"), {{"a", "b"}});
  EXPECT_EQ(problem_of(R"({"prompt": "a", "completion": 1})"),
            R"("completion": expected string, got number)");
}

TEST(Rows, NamedColumnsAreTheOnlyOnes) {
  const std::array<std::string, 3> words{"prompt=question", "response=answer", "system=role"};
  const RowColumns columns = named_columns(words, "dataset_columns");
  const Conversation row = row_of(
      R"({"question": "a", "answer": "b", "role": "s", "input": "not read", "messages": []})",
      columns);
  expect_turns(row, {{"a", "b"}});
  EXPECT_EQ(row.system, "s");
  EXPECT_EQ(problem_of(R"({"question": "a", "anwser": "b"})", columns),
            R"(missing "answer" (found "anwser"))");
  const std::array<std::string, 1> chat{"messages=talk"};
  const RowColumns talk = named_columns(chat, "dataset_columns");
  expect_turns(
      row_of(R"({"talk": [{"from": "user", "value": "a"}, {"from": "gpt", "value": "b"}]})", talk),
      {{"a", "b"}});
  EXPECT_EQ(problem_of(R"({"messages": []})", talk), R"(missing "talk")");
}

TEST(Rows, AMappingThatSaysNothingOrTooMuchIsRefused) {
  const auto refusal = [](const std::vector<std::string>& words) {
    return error_of(ErrorKind::kConfig, [&] { (void)named_columns(words, "dataset_columns"); });
  };
  EXPECT_HAS(refusal({"question"}), R"("question" is not of the form name=column)");
  EXPECT_HAS(refusal({"quest=a"}), R"(there is nothing called "quest")");
  EXPECT_HAS(refusal({"prompt=a", "prompt=b"}), R"("prompt" is named twice)");
  EXPECT_HAS(refusal({"prompt="}), R"("prompt" has no column)");
  EXPECT_HAS(refusal({"prompt=a"}), "neither prompt and response nor messages");
  EXPECT_HAS(refusal({"messages=a", "prompt=b"}), "messages hold question and answer");
}

TEST(Rows, AFirstRowNamesItsFormat) {
  const auto says = [](const std::string& json, const std::string& part) {
    return foreign_to_supervised(Json::parse(json)).find(part) != std::string::npos;
  };
  EXPECT_TRUE(
      says(R"({"question": "q", "answer": "a"})", R"(the columns are "question", "answer")"));
  EXPECT_TRUE(says(R"({"prompt": "q", "chosen": "a", "rejected": "b"})", "preference rows"));
  EXPECT_TRUE(says(R"({"text": "q"})", "--stage pt"));
  EXPECT_EQ(foreign_to_supervised(Json::parse(R"({"instuction": "a", "ouput": "b"})")), "");
  EXPECT_EQ(foreign_to_supervised(Json::parse(R"({"conversations": []})")), "");
  EXPECT_EQ(foreign_to_supervised(Json::parse("7")), "");
}

}  // namespace
}  // namespace zeroth::data
