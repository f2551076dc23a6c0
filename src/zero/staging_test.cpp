#include "zero/staging.h"

#include <gtest/gtest.h>

namespace zeroth::zero {
namespace {

class Counted : public InFlight::Work {
 public:
  explicit Counted(int& waits) : waits_(waits) {}

  void wait() override { ++waits_; }

 private:
  int& waits_;
};

SharedWrite writing(int& waits) {
  return std::make_shared<InFlight>(std::make_unique<Counted>(waits));
}

TEST(StagingPool, WaitsForAWriteOnlyWhenNoBufferIsLeft) {
  const auto tally = std::make_shared<memory::Tally>();
  StagingPool pool(4096, 2, tally);
  int waits = 0;
  pool.give(pool.take(), writing(waits));
  pool.give(pool.take(), writing(waits));
  EXPECT_EQ(waits, 0);
  EXPECT_FALSE(pool.has_free());
  memory::FlatBuffer third = pool.take();
  EXPECT_EQ(waits, 1);
  EXPECT_EQ(tally->bytes(memory::Purpose::kBuffers), 2 * 4096);
  pool.give(std::move(third));
  EXPECT_TRUE(pool.has_free());
}

// A unit that must have one now does not wait for what nobody gives back.
TEST(StagingPool, MakesABufferMoreWhereAllAreTaken) {
  const auto tally = std::make_shared<memory::Tally>();
  StagingPool pool(4096, 1, tally);
  const memory::FlatBuffer first = pool.take();
  const memory::FlatBuffer second = pool.take();
  EXPECT_NE(first.data(), second.data());
  EXPECT_EQ(tally->bytes(memory::Purpose::kBuffers), 2 * 4096);
}

}  // namespace
}  // namespace zeroth::zero
