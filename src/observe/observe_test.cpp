#include "base/file.h"
#include "observe/progress.h"
#include "observe/records.h"
#include <gtest/gtest.h>

namespace zeroth::observe {
namespace {

TEST(Progress, LineSaysPercentStepLossSpeedAndTimeLeft) {
  const std::string line = progress_text({.step = 6,
                                          .total = 50,
                                          .loss = 2.34567,
                                          .learning_rate = 1e-4,
                                          .grad_norm = 1.5,
                                          .tokens_per_second = 5432,
                                          .seconds_left = 83});
  EXPECT_EQ(line, " 12% 6/50  loss 2.3457  lr 1.00e-04  norm 1.500  5432 tokens/s  01:23 left");
}

TEST(Progress, NumbersForPeople) {
  EXPECT_EQ(clock_text(3723), "1:02:03");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(grouped(-1234), "-1,234");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(bytes_text(1'234'567), "1.2 MB");
}

TEST(Records, EachIsOneLine) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / "zeroth_records.jsonl";
  {
    Records records(path);
    records.append({{"kind", "update"}, {"step", 1}});
    records.append({{"kind", "update"}, {"text", "\xff"}});
  }
  const std::string content = read_file(path, ErrorKind::kDisk);
  EXPECT_EQ(std::count(content.begin(), content.end(), '\n'), 2);
  EXPECT_TRUE(content.starts_with("{\"kind\":\"update\",\"step\":1}\n"));
  std::filesystem::remove(path);
}

TEST(Records, AFolderThatIsNotThereIsADiskError) {
  EXPECT_THROW(Records("/nonexistent/metrics.jsonl"), Error);
}

}  // namespace
}  // namespace zeroth::observe
