#include "zero/array.h"

#include <filesystem>
#include <numeric>

#include "shard/on_file.h"
#include <gtest/gtest.h>

namespace zeroth::zero {
namespace {

using shard::kPieceElements;

constexpr std::int64_t kCount = 3'000'017;  // several trips of a copy, and no whole page at the end

std::shared_ptr<offload::SwapSpace> space() {
  return std::make_shared<offload::SwapSpace>(
      std::filesystem::temp_directory_path(), offload::IoOptions{}, offload::IoKind::kThreads);
}

std::vector<float> numbers(std::int64_t count, float first) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return values;
}

std::vector<float> read(const Array& array, std::int64_t begin, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count), -1.0F);
  array.copy_out(begin, std::as_writable_bytes(std::span(values)));
  return values;
}

class ArrayPlaces : public testing::TestWithParam<bool> {
 protected:
  Array make() {
    return GetParam() ? Array(kCount, 4, space())
                      : Array(kCount, 4, memory::Purpose::kMoments, tally_);
  }

  std::shared_ptr<memory::Tally> tally_ = std::make_shared<memory::Tally>();
};

INSTANTIATE_TEST_SUITE_P(Places, ArrayPlaces, testing::Bool(), [](const auto& test) {
  return test.param ? "file" : "memory";
});

TEST_P(ArrayPlaces, StartAtZero) {
  const Array array = make();
  EXPECT_EQ(read(array, kCount - 5, 5), std::vector<float>(5, 0.0F));
  EXPECT_EQ(read(array, 0, 5), std::vector<float>(5, 0.0F));
}

TEST_P(ArrayPlaces, CopiesOfAnyRangeLeaveTheRest) {
  const Array array = make();
  const std::vector<float> all = numbers(kCount, 1);
  array.copy_in(0, std::as_bytes(std::span(all)));
  const std::vector<float> part = numbers(2'000'003, -3e6F);
  array.copy_in(999, std::as_bytes(std::span(part)));
  EXPECT_EQ(read(array, 999, 2'000'003), part);
  EXPECT_EQ(read(array, 0, 999), numbers(999, 1));
  EXPECT_EQ(read(array, 2'001'002, kCount - 2'001'002), numbers(kCount - 2'001'002, 2'001'003));
}

TEST(Array, OnFileTakesNoMemory) {
  const auto tally = std::make_shared<memory::Tally>();
  const Array there(kCount, 4, space());
  const Array here(kCount, 4, memory::Purpose::kMoments, tally);
  EXPECT_EQ(tally->bytes(memory::Purpose::kMoments), 4 * kCount);
  EXPECT_EQ(there.data(), nullptr);
  EXPECT_EQ(there.bytes(), here.bytes());
}

TEST(Array, PiecesMoveInPages) {
  const auto where = space();
  const Array first(kCount, 2, where);
  const Array second(kCount, 4, where);
  const auto tally = std::make_shared<memory::Tally>();
  const memory::FlatBuffer room(kPieceElements * 4, memory::Purpose::kBuffers, tally);
  const std::vector<float> all = numbers(kCount, 0);
  second.copy_in(0, std::as_bytes(std::span(all)));
  first.start_writing(kPieceElements, kPieceElements, room.data()).wait();
  second.start_reading(3 * kPieceElements, kPieceElements, room.data()).wait();
  EXPECT_EQ(room.as<float>()[1], 3.0F * kPieceElements + 1);
  EXPECT_EQ(where->bytes(), offload::aligned_up(kCount * 2) + offload::aligned_up(kCount * 4));
}

}  // namespace
}  // namespace zeroth::zero
