#include "formats/model_config.h"

#include "formats/test_files.h"
#include <gtest/gtest.h>

namespace zeroth::formats {
namespace {

using testing::expect_error;
using testing::TemporaryFolder;

TEST(GenerationDefaults, OfARealModel) {
  if (!testing::has_shared_data()) {
    GTEST_SKIP() << "needs ../shared/data";
  }
  const auto models = testing::shared_data() / "models";
  EXPECT_EQ(read_generation_defaults(models / "stories260K-hf").eos_token_ids,
            (std::vector<std::int64_t>{1, 2}));
}

TEST(GenerationDefaults, AreEmptyWithoutAFileAndReadIdsFromIt) {
  const TemporaryFolder folder;
  EXPECT_TRUE(read_generation_defaults(folder.path()).eos_token_ids.empty());
  (void)folder.write("generation_config.json", R"({"eos_token_id": 7, "pad_token_id": 3})");
  EXPECT_EQ(read_generation_defaults(folder.path()).eos_token_ids, (std::vector<std::int64_t>{7}));
  EXPECT_EQ(read_generation_defaults(folder.path()).pad_token_id, 3);
  (void)folder.write("generation_config.json", R"({"pad_token_id": -1})");
  EXPECT_FALSE(read_generation_defaults(folder.path()).pad_token_id.has_value());
  (void)folder.write("generation_config.json", R"({"eos_token_id": ["x"]})");
  expect_error([&] { (void)read_generation_defaults(folder.path()); },
               ErrorKind::kModel,
               {"generation_config.json", "eos_token_id"});
}

}  // namespace
}  // namespace zeroth::formats
