#include <filesystem>

#include "base/file.h"
#include "process.h"
#include <gtest/gtest.h>

// Mistakes of a program, on ranks that are processes: told once, with the code of their kind, soon.
namespace zeroth::testing {
namespace {

namespace fs = std::filesystem;

Outcome run_story(const std::string& rows, const std::string& mistake) {
  const TemporaryFolder folder;
  const fs::path settings = folder.path() / "ds_config.json";
  write_file_atomically(
      settings, "{\n  \"train_batch_size\": 32,\n  \"gradient_accumulation_steps\": 1\n}\n");
  return run({.arguments = {ZEROTH_PROGRAM,
                            "launch",
                            "--ranks",
                            "4",
                            "--",
                            ZEROTH_STORY,
                            settings.string(),
                            rows,
                            mistake},
              .input = "",
              .environment = {},
              .working_folder = {}});
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

TEST(Story, ALoaderOfOneRowIsRefusedBeforeTheFirstUpdate) {
  const Outcome outcome = run_story("1", "");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(contains(outcome.errors, "the micro-batch in force is 8 rows")) << outcome.errors;
  EXPECT_TRUE(contains(outcome.errors, "train_batch_size 32 (ds_config.json:2)")) << outcome.errors;
  EXPECT_TRUE(contains(outcome.errors, "1 x 1 x 4 = 4 rows, not 32 rows")) << outcome.errors;
  EXPECT_EQ(count(outcome.errors, "Batch::last_of_epoch"), 1U) << outcome.errors;
  EXPECT_LT(outcome.seconds, 20);
}

TEST(Story, CountingTwiceIsRefused) {
  const Outcome outcome = run_story("8", "step_once");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(contains(outcome.errors, "forward() after backward() without step()"))
      << outcome.errors;
  EXPECT_TRUE(contains(outcome.errors, "gradient_accumulation_steps 1 (ds_config.json:3)"))
      << outcome.errors;
}

TEST(Story, ARankThatDiesIsNamedWithWhatItDid) {
  const Outcome outcome = run_story("8", "die");
  EXPECT_EQ(outcome.exit_code, 9);
  EXPECT_TRUE(contains(outcome.errors, "rank 1 (process ")) << outcome.errors;
  EXPECT_TRUE(contains(outcome.errors, "ended with code 9, busy with ")) << outcome.errors;
  EXPECT_LT(outcome.seconds, 20);
}

TEST(Story, AStepTooManyIsRefusedAtTheEnd) {
  const Outcome outcome = run_story("8", "");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(contains(outcome.errors, "step() without forward() and backward()"))
      << outcome.errors;
}

}  // namespace
}  // namespace zeroth::testing
