// Mutation of values, generated from the schema: each key of each kind of file with a value of the
// wrong type, and outside its range.
#include "config/sample_values.h"
#include "config/support.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace zeroth::config {
namespace {

constexpr Dialect kAllDialects[] = {Dialect::kDeepSpeed, Dialect::kAccelerate, Dialect::kRecipe};

// One problem of this kind that names the path and the line, and nothing in the account but the
// refusal.
void expect_refused(Dialect dialect, const std::string& path, const Json& value, ProblemKind kind) {
  const Reading reading = reading_of(dialect, path, value);
  ASSERT_EQ(reading.problems.size(), 1U) << path << " " << value << " in " << file_of(dialect);
  const Problem& problem = reading.problems.front();
  EXPECT_STREQ(name_of(problem.kind), name_of(kind)) << problem.message;
  EXPECT_TRUE(has(problem.message, path)) << problem.message;
  EXPECT_TRUE(has(problem.message, reading.source)) << problem.message;
  EXPECT_EQ(problem.sources, std::vector<std::string>{reading.source}) << problem.message;
  for (const Written& written : reading.account) {
    EXPECT_EQ(written.outcome, Outcome::kRefused) << path << " " << value;
    EXPECT_FALSE(written.note.empty()) << path << " " << value;
  }
}

// Its block is a ds_config.json written in place.
bool holds_a_file(const Declaration& key) {
  return key.name == "deepspeed";
}

TEST(Mutation, AValueOfTheWrongTypeIsRefused) {
  for (const Dialect dialect : kAllDialects) {
    std::size_t tried = 0;
    std::size_t any = 0;
    for (const std::string& path : paths_in(dialect)) {
      const Declaration& key = *find_in(dialect, path);
      const std::vector<Json> wrong = values_of_wrong_type(key, dialect);
      any += wrong.empty() ? 1 : 0;
      for (const Json& value : wrong) {
        if (!(holds_a_file(key) && value.is_object())) {
          expect_refused(dialect, path, value, ProblemKind::kType);
          ++tried;
        }
      }
    }
    fmt::print("{}: {} values of the wrong type refused; {} keys take any\n",
               file_of(dialect),
               tried,
               any);
    EXPECT_GT(tried, paths_in(dialect).size());
  }
}

TEST(Mutation, AValueOutOfRangeIsRefused) {
  for (const Dialect dialect : kAllDialects) {
    std::size_t tried = 0;
    std::size_t keys = 0;
    for (const std::string& path : paths_in(dialect)) {
      const std::vector<Json> outside = values_out_of_range(*find_in(dialect, path));
      keys += outside.empty() ? 0 : 1;
      for (const Json& value : outside) {
        expect_refused(dialect, path, value, ProblemKind::kRange);
        ++tried;
      }
    }
    fmt::print(
        "{}: {} values out of range refused, of {} keys with one\n", file_of(dialect), tried, keys);
    EXPECT_GT(keys, 0U);
  }
}

// What the schema itself counts as good is taken: else the refusals above would prove nothing.
TEST(Mutation, AGoodValueIsTaken) {
  for (const Dialect dialect : kAllDialects) {
    for (const std::string& path : paths_in(dialect)) {
      const Declaration& key = *find_in(dialect, path);
      for (const Json& value : sample_values(key)) {
        const Reading reading = reading_of(dialect, path, value);
        if (!key.parts) {
          EXPECT_TRUE(reading.problems.empty())
              << path << " " << value << ": " << reading.problems.front().message;
        }
        EXPECT_EQ(reading.account.size(), 1U) << path;
      }
    }
  }
}

}  // namespace
}  // namespace zeroth::config
