#include "data/alpaca.h"

#include <gtest/gtest.h>

namespace zeroth::data {
namespace {

std::string problem_of(const std::string& json, Answer answer = Answer::kRequired) {
  std::string problem;
  (void)parse_alpaca_row(Json::parse(json), {}, answer, problem);
  return problem;
}

Conversation row_of(const std::string& json) {
  std::string problem;
  Conversation row = parse_alpaca_row(Json::parse(json), {}, Answer::kRequired, problem);
  EXPECT_EQ(problem, "") << json;
  return row;
}

TEST(Alpaca, JoinsTheNonEmptyPartsOfTheQuestion) {
  EXPECT_EQ(row_of(R"({"instruction": "a", "input": "b", "output": "c"})").turns[0].user, "a\nb");
  EXPECT_EQ(row_of(R"({"instruction": "a", "input": "", "output": "c"})").turns[0].user, "a");
  EXPECT_EQ(row_of(R"({"instruction": "a", "input": null, "output": "c"})").turns[0].user, "a");
  EXPECT_EQ(row_of(R"({"instruction": "", "input": "b", "output": "c"})").turns[0].user, "b");
}

TEST(Alpaca, HistoryComesFirstAndSystemStandsApart) {
  const auto row =
      row_of(R"({"instruction": "q2", "output": "a2", "system": "s", "history": [["q1", "a1"]]})");
  EXPECT_EQ(row.system, "s");
  ASSERT_EQ(row.turns.size(), 2U);
  EXPECT_EQ(row.turns[0].user, "q1");
  EXPECT_EQ(row.turns[0].assistant, "a1");
  EXPECT_EQ(row.turns[1].user, "q2");
  EXPECT_EQ(row.turns[1].assistant, "a2");
}

TEST(Alpaca, SaysWhatIsWrongWithARow) {
  EXPECT_EQ(problem_of(R"({"instruction": "a", "output": {"a": 1}})"),
            R"("output": expected string, got object)");
  EXPECT_EQ(problem_of(R"({"instruction": "a", "ouput": "b"})"),
            R"(missing "output" (found "ouput"))");
  EXPECT_EQ(problem_of(R"({"instruction": "a"})"), R"(missing "output")");
  EXPECT_EQ(problem_of(R"({"output": null})"),
            R"(missing "instruction"; "output": expected string, got null)");
  EXPECT_EQ(problem_of(R"({"instruction": "a", "input": 3, "output": "b"})"),
            R"("input": expected string, got number)");
  EXPECT_EQ(problem_of(R"({"instruction": "a", "inptu": "x", "output": "b"})"),
            R"(no column "inptu"; "input" was meant?)");
  EXPECT_EQ(problem_of(R"({"instruction": "a", "output": "b", "history": "x"})"),
            R"("history": expected list of [user, assistant] pairs, got string)");
  EXPECT_EQ(problem_of(R"({"instruction": "a", "output": "b", "history": [["x", "y"], ["x"]]})"),
            R"("history": entry 2 is not a pair of strings [user, assistant])");
  EXPECT_EQ(problem_of("[1]"), "expected an object with instruction and output, got array");
}

TEST(Alpaca, OtherColumnsAreWelcome) {
  EXPECT_EQ(
      problem_of(R"({"id": 7, "instruction": "a", "output": "b", "tags": ["x"], "story": "s"})"),
      "");
}

TEST(Alpaca, TheAnswerMayBeAbsentWhereItIsOptional) {
  EXPECT_EQ(problem_of(R"({"instruction": "a"})", Answer::kOptional), "");
  EXPECT_EQ(problem_of(R"({"instruction": "a", "output": null})", Answer::kOptional), "");
  EXPECT_NE(problem_of(R"({"instruction": "a", "output": 1})", Answer::kOptional), "");
  EXPECT_NE(problem_of(R"({"instruction": "a", "ouput": "b"})", Answer::kOptional), "");
}

}  // namespace
}  // namespace zeroth::data
