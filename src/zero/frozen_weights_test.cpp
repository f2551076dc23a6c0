#include "zero/frozen_weights.h"

#include <array>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "comm/make.h"
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <ATen/ATen.h>

// Where frozen weights come to lie, and what each rank reads and counts of them.
namespace zeroth::zero {
namespace {

using memory::Purpose;

constexpr std::int64_t kNumel = 1 << 18;

// As a model's file: pages that nobody can write. `offset`: bytes before the first number.
class File {
 public:
  explicit File(at::ScalarType dtype, std::int64_t offset = 0) : dtype_(dtype), offset_(offset) {
    data_ = ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    tensor().view({-1}).copy_(at::arange(0, kNumel).remainder(1009) * 0.37);
    ::mprotect(data_, bytes(), PROT_READ);
  }

  File(const File&) = delete;
  File& operator=(const File&) = delete;

  ~File() { ::munmap(data_, bytes()); }

  // Makes the first or second half unreadable.
  void hide(std::size_t half) const {
    const std::size_t size = kNumel / 2 * c10::elementSize(dtype_);
    ::mprotect(static_cast<std::byte*>(data_) + half * size, size, PROT_NONE);
  }

  [[nodiscard]] at::Tensor tensor() const {
    return at::from_blob(static_cast<std::byte*>(data_) + offset_, {kNumel / 64, 64}, dtype_);
  }

 private:
  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(kNumel + 8) * c10::elementSize(dtype_);
  }

  at::ScalarType dtype_;
  std::int64_t offset_;
  void* data_ = nullptr;
};

class Layer : public models::Unit {
 public:
  explicit Layer(const std::vector<at::Tensor>& stored) : Unit("layer") {
    for (const at::Tensor& tensor : stored) {
      parameters_.push_back({.name = std::to_string(parameters_.size()), .stored = tensor});
    }
  }

  at::Tensor forward(const models::ForwardContext& /*context*/, const at::Tensor& x) override {
    return x;
  }
};

struct Held {
  models::UnitList units;
  std::shared_ptr<memory::Tally> tally = std::make_shared<memory::Tally>();

  [[nodiscard]] models::Parameter& parameter(std::size_t index) const {
    return units.front()->parameters()[index];
  }

  [[nodiscard]] at::Tensor value(std::size_t index) const { return parameter(index).value; }

  [[nodiscard]] std::int64_t counted() const { return tally->bytes(Purpose::kWeights); }
};

Held held(const std::vector<at::Tensor>& stored,
          const FrozenOptions& options,
          comm::Communicator& comm) {
  Held result;
  result.units.push_back(std::make_unique<Layer>(stored));
  hold_frozen(result.units, options, comm, result.tally);
  return result;
}

// All ranks hold, then each is looked at while the others still do.
void on_ranks(int ranks,
              const std::vector<at::Tensor>& stored,
              const FrozenOptions& options,
              const std::function<void(const Held&, comm::Communicator&)>& look) {
  auto group = comm::make_thread_group(ranks);
  std::vector<std::jthread> threads;
  for (auto& member : group) {
    threads.emplace_back([&, comm = std::shared_ptr<comm::Communicator>(std::move(member))] {
      const Held here = held(stored, options, *comm);
      comm->barrier("all hold");
      look(here, *comm);
      comm->barrier("all have looked");
    });
  }
}

void expect_value(const at::Tensor& value, const at::Tensor& stored, at::ScalarType dtype) {
  EXPECT_EQ(value.scalar_type(), dtype);
  EXPECT_TRUE(at::equal(value, stored.to(dtype)));
  EXPECT_FALSE(value.requires_grad());
}

TEST(FrozenWeights, ThoseOfTheTypeThatComputesStayInTheFile) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const File file(dtype, 8);
    on_ranks(3, {file.tensor()}, {.dtype = dtype}, [&](const Held& here, auto& /*comm*/) {
      EXPECT_EQ(here.value(0).data_ptr(), file.tensor().data_ptr());
      expect_value(here.value(0), file.tensor(), dtype);
      const auto width = static_cast<std::int64_t>(c10::elementSize(dtype));
      EXPECT_EQ(here.counted(), (kNumel * width + 2) / 3);
    });
  }
}

TEST(FrozenWeights, OthersAreConvertedOnceForAllRanks) {
  const File narrow(at::kBFloat16);
  const File unaligned(at::kFloat, 2);
  std::set<void*> places;
  std::mutex mutex;
  on_ranks(3,
           {narrow.tensor(), unaligned.tensor()},
           {.dtype = at::kFloat},
           [&](const Held& here, auto& /*comm*/) {
             expect_value(here.value(0), narrow.tensor(), at::kFloat);
             expect_value(here.value(1), unaligned.tensor(), at::kFloat);
             EXPECT_FALSE(here.parameter(0).stored.defined());  // the file may go
             EXPECT_EQ(here.counted(), (2 * kNumel * 4 + 2) / 3);
             const std::lock_guard lock(mutex);
             places.insert(here.value(0).data_ptr());
           });
  EXPECT_EQ(places.size(), 1U);
}

// The pages of the other rank's part cannot be read here.
TEST(FrozenWeights, EachRankReadsItsPartAlone) {
  const std::array<File, 2> files{File(at::kBFloat16), File(at::kBFloat16)};
  const at::Tensor expected = files[0].tensor().to(at::kFloat);
  files[0].hide(1);
  files[1].hide(0);
  auto group = comm::make_thread_group(2);
  std::vector<std::jthread> threads;
  for (auto& member : group) {
    threads.emplace_back([&, comm = std::shared_ptr<comm::Communicator>(std::move(member))] {
      const File& file = files[static_cast<std::size_t>(comm->rank())];
      const Held here = held({file.tensor()}, {.dtype = at::kFloat}, *comm);
      EXPECT_TRUE(at::equal(here.value(0), expected));
    });
  }
}

TEST(FrozenWeights, AloneOrUnsharedThereAreCopies) {
  const File same(at::kFloat);
  const File narrow(at::kBFloat16);
  const auto alone = comm::make_local_communicator();
  const Held shared = held({same.tensor(), narrow.tensor()}, {.dtype = at::kFloat}, *alone);
  EXPECT_EQ(shared.value(0).data_ptr(), same.tensor().data_ptr());
  EXPECT_EQ(shared.counted(), 2 * kNumel * 4);
  expect_value(shared.value(1), narrow.tensor(), at::kFloat);
  on_ranks(2,
           {same.tensor(), narrow.tensor()},
           {.dtype = at::kFloat, .share = false},
           [&](const Held& here, auto& /*comm*/) {
             EXPECT_NE(here.value(0).data_ptr(), same.tensor().data_ptr());
             expect_value(here.value(0), same.tensor(), at::kFloat);
             expect_value(here.value(1), narrow.tensor(), at::kFloat);
             EXPECT_EQ(here.counted(), 2 * kNumel * 4);
           });
}

TEST(FrozenWeights, AreCountedUntilTheyGo) {
  const File same(at::kFloat);
  const File narrow(at::kBFloat16);
  on_ranks(2, {same.tensor(), narrow.tensor()}, {}, [](const Held& here, auto& /*comm*/) {
    EXPECT_GT(here.counted(), 0);
    for (std::size_t index = 0; index < 2; ++index) {
      here.parameter(index).value.reset();
    }
    EXPECT_EQ(here.counted(), 0);
  });
}

// What trains and what has a value is left to others.
TEST(FrozenWeights, TheRestIsLeftAlone) {
  const File file(at::kFloat);
  const auto alone = comm::make_local_communicator();
  models::UnitList units;
  units.push_back(std::make_unique<Layer>(std::vector<at::Tensor>{file.tensor(), {}}));
  std::vector<models::Parameter>& parameters = units.front()->parameters();
  parameters[0].trainable = true;
  parameters[1].value = at::ones({4});
  const void* const before = parameters[1].value.data_ptr();
  hold_frozen(units, {.dtype = at::kBFloat16}, *alone, std::make_shared<memory::Tally>());
  EXPECT_FALSE(parameters[0].value.defined());
  EXPECT_EQ(parameters[1].value.data_ptr(), before);
}

}  // namespace
}  // namespace zeroth::zero
