#include "zero/packed_weights.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "comm/make.h"
#include "formats/mapped_file.h"
#include "zero/frozen_weights.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>

// Which weights are packed, where they lie, and what each rank counts of them.
namespace zeroth::zero {
namespace {

using kernels::PackedWeight;
using kernels::Packing;
using kernels::Side;

constexpr std::int64_t kOut = 128;
constexpr std::int64_t kIn = 192;

class Layer : public models::Unit {
 public:
  explicit Layer(std::vector<models::Parameter> parameters)
      : Unit("layer", std::move(parameters)) {}

  at::Tensor forward(const models::ForwardContext& /*context*/, const at::Tensor& x) override {
    return x;
  }
};

at::Tensor numbers(std::int64_t seed) {
  return (at::arange(seed, seed + kOut * kIn) % 5 - 2).view({kOut, kIn}).to(at::kBFloat16);
}

// Two frozen factors, one that trains, and a frozen parameter that nothing multiplies by.
models::UnitList units() {
  models::UnitList list;
  list.push_back(std::make_unique<Layer>(std::vector<models::Parameter>{
      {.name = "first", .value = numbers(0), .is_factor = true},
      {.name = "second", .value = numbers(1), .is_factor = true},
      {.name = "trained", .value = numbers(2), .trainable = true, .is_factor = true},
      {.name = "norm", .value = numbers(3)}}));
  return list;
}

std::int64_t bytes_of_one(Packing packing) {
  return PackedWeight::bytes_for({kOut, kIn, at::kBFloat16}, packing);
}

void on_ranks(int ranks, const std::function<void(comm::Communicator&)>& body) {
  auto group = comm::make_thread_group(ranks);
  std::vector<std::jthread> threads;
  for (auto& member : group) {
    threads.emplace_back(
        [&body, comm = std::shared_ptr<comm::Communicator>(std::move(member))] { body(*comm); });
  }
}

// As if the plain values were gone.
void expect_packed(const models::Parameter& parameter, Side side) {
  const at::Tensor x = (at::arange(0, 8 * (side == Side::kForward ? kIn : kOut)) % 3 - 1)
                           .view({8, -1})
                           .to(at::kBFloat16);
  const kernels::Weight gone(at::zeros_like(parameter.value), parameter.packed);
  const at::Tensor expected = kernels::product(
      x, side == Side::kForward ? parameter.value.t() : at::Tensor(parameter.value));
  EXPECT_TRUE(at::equal(kernels::product(x, gone, side), expected)) << parameter.name;
}

void expect_right(const models::UnitList& list, bool packs) {
  const std::vector<models::Parameter>& parameters = list.front()->parameters();
  for (const std::size_t index : {0U, 1U}) {
    ASSERT_EQ(parameters[index].packed != nullptr, packs);
    if (packs) {
      expect_packed(parameters[index], Side::kForward);
      expect_packed(parameters[index], Side::kInputGradient);
    }
  }
  EXPECT_EQ(parameters[2].packed, nullptr);
  EXPECT_EQ(parameters[3].packed, nullptr);
}

TEST(PackedWeights, AreThereOnceForAllRanksOfAHost) {
  const std::int64_t bytes = 2 * bytes_of_one(Packing::kBoth);
  for (const int ranks : {1, 2, 3}) {
    on_ranks(ranks, [&](comm::Communicator& comm) {
      models::UnitList list = units();
      const auto tally = std::make_shared<memory::Tally>();
      pack_frozen(list, {.packing = Packing::kBoth}, comm, tally);
      expect_right(list, bytes > 0);
      EXPECT_EQ(tally->bytes(memory::Purpose::kWeights), (bytes + ranks - 1) / ranks);
      comm.barrier("all have looked");
    });
  }
}

TEST(PackedWeights, AreEachRanksOwnWhereNothingIsShared) {
  const std::int64_t bytes = 2 * bytes_of_one(Packing::kBoth);
  on_ranks(2, [&](comm::Communicator& comm) {
    models::UnitList list = units();
    const auto tally = std::make_shared<memory::Tally>();
    pack_frozen(list, {.packing = Packing::kBoth, .share = false}, comm, tally);
    expect_right(list, bytes > 0);
    EXPECT_EQ(tally->bytes(memory::Purpose::kWeights), bytes);
    list.clear();
    EXPECT_EQ(tally->bytes(memory::Purpose::kWeights), 0);
  });
}

// `first` lies in a file, as does `second`, of which rows are looked up as well.
TEST(PackedWeights, GiveBackThePagesOfTheFileThatTheyReplace) {
  const auto alone = comm::make_local_communicator();
  const auto tally = std::make_shared<memory::Tally>();
  for (const Packing packing : {Packing::kForward, Packing::kBoth}) {
    const std::filesystem::path path = testing::TempDir() + "/weights";
    constexpr std::int64_t kBytes = kOut * kIn * 2;
    std::ofstream(path, std::ios::binary)
        .write(static_cast<const char*>(at::cat({numbers(0), numbers(1)}).data_ptr()), 2 * kBytes);
    const auto file = std::make_shared<formats::MappedFile>(path);
    models::UnitList list = units();
    for (const std::size_t index : {0U, 1U}) {
      models::Parameter& parameter = list.front()->parameters()[index];
      parameter.stored = at::from_blob(
          const_cast<std::byte*>(file->bytes().data()) + static_cast<std::int64_t>(index) * kBytes,
          {kOut, kIn},
          [file](void*) {},
          at::TensorOptions(at::kBFloat16));
      parameter.value.reset();
    }
    list.front()->parameters().front().is_pure_factor = true;
    hold_frozen(list, {.dtype = at::kBFloat16}, *alone, tally);
    const std::int64_t held = tally->bytes(memory::Purpose::kWeights);
    EXPECT_EQ(held, 2 * kBytes);
    pack_frozen(list, {.packing = packing}, *alone, tally);
    const std::int64_t packed = 2 * bytes_of_one(packing);
    const bool gives_back = packing == Packing::kBoth && packed > 0;
    EXPECT_EQ(tally->bytes(memory::Purpose::kWeights), held + packed - (gives_back ? kBytes : 0));
    if (packing == Packing::kBoth) {
      expect_right(list, packed > 0);
    }
    EXPECT_TRUE(at::equal(list.front()->parameters()[0].value, numbers(0)));  // once more
    EXPECT_TRUE(at::equal(list.front()->parameters()[1].value, numbers(1)));
  }
}

TEST(PackedWeights, AreThereWhereTheyAreAskedForAlone) {
  const auto alone = comm::make_local_communicator();
  const auto tally = std::make_shared<memory::Tally>();
  models::UnitList list = units();
  pack_frozen(list, {}, *alone, tally);
  expect_right(list, false);
  pack_frozen(list, {.packing = Packing::kForward}, *alone, tally);
  EXPECT_EQ(tally->bytes(memory::Purpose::kWeights), 2 * bytes_of_one(Packing::kForward));
}

}  // namespace
}  // namespace zeroth::zero
