#include "base/error.h"
#include "memory/flat_buffer.h"
#include <gtest/gtest.h>

namespace zeroth::memory {
namespace {

TEST(FlatBuffer, IsZeroedAlignedAndCountedWhileItLives) {
  const auto tally = std::make_shared<Tally>();
  {
    FlatBuffer buffer(3 << 20, Purpose::kMaster, tally);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0U);
    EXPECT_EQ(buffer.as<float>().back(), 0.0F);
    EXPECT_EQ(tally->bytes(Purpose::kMaster), 3 << 20);
    FlatBuffer moved = std::move(buffer);
    EXPECT_EQ(tally->model_state_bytes(), 3 << 20);
    moved.as<float>().front() = 1.0F;
    moved.set_zero();
    EXPECT_EQ(moved.as<float>().front(), 0.0F);
  }
  EXPECT_EQ(tally->bytes(Purpose::kMaster), 0);
}

TEST(FlatBuffer, RefusesMoreThanTheSystemHas) {
  const auto tally = std::make_shared<Tally>();
  EXPECT_THROW(FlatBuffer(std::int64_t{1} << 60, Purpose::kWeights, tally), Error);
  EXPECT_EQ(tally->bytes(Purpose::kWeights), 0);
}

}  // namespace
}  // namespace zeroth::memory
