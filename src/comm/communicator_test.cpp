#include "comm/communicator.h"

#include <array>
#include <chrono>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "comm/make.h"
#include "comm/test_support.h"
#include "comm/testing.h"
#include "comm/watched_communicator.h"
#include <gtest/gtest.h>

namespace zeroth::comm {
namespace {

using testing::Bytes;
using testing::Exercise;
using testing::exercise_on_threads;
using testing::expected_sum;
using testing::on_ranks;
using testing::on_threads;
using testing::sample;
using testing::uneven_ranges;

// Each error holds all of the words.
void expect_words(const std::vector<std::string>& errors, const std::vector<std::string>& words) {
  for (const std::string& error : errors) {
    for (const std::string& word : words) {
      EXPECT_NE(error.find(word), std::string::npos) << "'" << word << "' is not in: " << error;
    }
  }
}

void expect_no_errors(const std::vector<std::string>& errors) {
  EXPECT_EQ(errors, std::vector<std::string>(errors.size()));
}

class Ranks : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Sizes, Ranks, ::testing::Values(1, 2, 3, 4));

TEST_P(Ranks, ReduceScatterAddsInRankOrder) {
  const int size = GetParam();
  const auto errors = on_threads(size, [&](Communicator& comm) {
    for (const std::int64_t numel : {7, 4099, 600'000}) {
      const BufferPtr input = comm.allocate(numel * 4);
      for (std::int64_t i = 0; i < numel; ++i) {
        input->as<float>()[static_cast<std::size_t>(i)] = sample(comm.rank(), 3, i);
      }
      const std::vector<Span> ranges = uneven_ranges(size, numel);
      const Span own = ranges[static_cast<std::size_t>(comm.rank())];
      std::vector<float> output(static_cast<std::size_t>(own.end - own.begin), 0.5F);
      comm.reduce_scatter("gradients", input, ranges, output, false).wait();
      for (std::int64_t i = own.begin; i < own.end; ++i) {
        ASSERT_EQ(output[static_cast<std::size_t>(i - own.begin)], expected_sum(size, 3, i)) << i;
      }
      comm.reduce_scatter("again", input, ranges, output, true).wait();
      for (std::int64_t i = own.begin; i < own.end; ++i) {
        const float sum = expected_sum(size, 3, i);
        ASSERT_EQ(output[static_cast<std::size_t>(i - own.begin)], sum + sum) << i;
      }
    }
  });
  expect_no_errors(errors);
}

// 1.5 and -0.375 in each of the narrow types, and what widening makes of the borders.
TEST_P(Ranks, NarrowNumbersAreAddedInFp32) {
  const int size = GetParam();
  const auto errors = on_threads(size, [&](Communicator& comm) {
    for (const auto& [type, bits] : {std::pair{NumberType::kBFloat16, std::array{0x3FC0, 0xBEC0}},
                                     {NumberType::kFloat16, std::array{0x3E00, 0xB600}}}) {
      const BufferPtr input = comm.allocate(5000 * 2);
      for (std::size_t i = 0; i < 5000; ++i) {
        input->as<std::uint16_t>()[i] = static_cast<std::uint16_t>(bits[i % 2]);
      }
      const std::vector<Span> ranges = uneven_ranges(size, 5000);
      const Span own = ranges[static_cast<std::size_t>(comm.rank())];
      std::vector<float> output(static_cast<std::size_t>(own.end - own.begin));
      comm.reduce_scatter("narrow", input, ranges, output, false, type).wait();
      for (std::int64_t i = own.begin; i < own.end; ++i) {
        const float one = i % 2 == 0 ? 1.5F : -0.375F;
        ASSERT_EQ(output[static_cast<std::size_t>(i - own.begin)], one * static_cast<float>(size));
      }
    }
  });
  expect_no_errors(errors);
}

TEST_P(Ranks, Fp16WidensExactly) {
  const int size = GetParam();
  const auto errors = on_threads(size, [&](Communicator& comm) {
    // Smallest subnormal, largest subnormal, smallest normal, largest, infinity, minus zero.
    const std::vector<std::uint16_t> bits{0x0001, 0x03FF, 0x0400, 0x7BFF, 0x7C00, 0x8000};
    const std::vector<float> values{
        0x1p-24F, 0x3FFp-24F, 0x1p-14F, 65504.0F, std::numeric_limits<float>::infinity(), -0.0F};
    const BufferPtr input = comm.allocate(12);
    if (comm.rank() == 0) {
      std::copy(bits.begin(), bits.end(), input->as<std::uint16_t>().begin());
    }
    std::vector<Span> ranges(static_cast<std::size_t>(size), Span{0, 6});
    std::vector<float> output(6);
    comm.reduce_scatter("borders", input, ranges, output, false, NumberType::kFloat16).wait();
    EXPECT_EQ(output, values);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    comm.barrier("read");
    if (comm.rank() == 0) {
      input->as<std::uint16_t>()[0] = 0x7E00;
    }
    comm.reduce_scatter("NaN", input, ranges, output, false, NumberType::kFloat16).wait();
    EXPECT_NE(output[0], output[0]) << nan;
  });
  expect_no_errors(errors);
}

TEST_P(Ranks, AGatherInPiecesFillsTheSameBuffer) {
  const int size = GetParam();
  const auto errors = on_threads(size, [&](Communicator& comm) {
    for (const std::size_t piece : {std::size_t{24}, std::size_t{40'000}}) {
      const std::size_t shard_bytes = 3 * piece;
      const BufferPtr parts = comm.allocate(static_cast<std::int64_t>(shard_bytes));
      std::fill_n(parts->data(), shard_bytes, static_cast<std::byte>(comm.rank() + 1));
      const auto whole = shard_bytes * static_cast<std::size_t>(size);
      const BufferPtr shared = comm.allocate_shared(static_cast<std::int64_t>(whole));
      for (const BufferPtr& full : {make_private_buffer(whole), shared}) {
        for (std::size_t offset = 0; offset < shard_bytes; offset += piece) {
          comm.all_gather("piece",
                          {parts->data() + offset, piece},
                          full,
                          {.stride = shard_bytes, .offset = offset})
              .wait();
        }
        for (std::size_t i = 0; i < whole; ++i) {
          ASSERT_EQ(full->data()[i], static_cast<std::byte>(i / shard_bytes + 1)) << i;
        }
      }
    }
  });
  expect_no_errors(errors);
}

TEST(Watched, TellsTrafficAndDelaysWhatIsWaitedForAtOnce) {
  const auto errors = on_threads(2, [](Communicator& comm) {
    std::vector<Traffic> started;
    const auto watched = make_watched_communicator(
        std::shared_ptr<Communicator>(&comm, [](auto*) {}),
        {.started = [&](Communicator&, const Traffic& traffic) { started.push_back(traffic); },
         .waited = {},
         .delay = std::chrono::milliseconds(30)});
    const auto begin = std::chrono::steady_clock::now();
    std::vector<float> first(300), second(300);
    InFlight one = watched->all_reduce("one", first);
    InFlight two = watched->all_reduce("two", second);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(30));
    two.wait();
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(60));
    one.wait();
    ASSERT_EQ(started.size(), 2U);
    EXPECT_EQ(started[0].bytes, 1200);
  });
  expect_no_errors(errors);
}

TEST_P(Ranks, AllReduceAddsInRankOrder) {
  const int size = GetParam();
  const auto errors = on_threads(size, [&](Communicator& comm) {
    for (const std::size_t numel : {std::size_t{1}, std::size_t{128}, std::size_t{200'000}}) {
      std::vector<float> values(numel);
      for (std::size_t i = 0; i < numel; ++i) {
        values[i] = sample(comm.rank(), 5, static_cast<std::int64_t>(i));
      }
      comm.all_reduce("norms", values).wait();
      for (std::size_t i = 0; i < numel; ++i) {
        ASSERT_EQ(values[i], expected_sum(size, 5, static_cast<std::int64_t>(i))) << i;
      }
    }
  });
  expect_no_errors(errors);
}

TEST_P(Ranks, AllGatherPutsShardsEndToEnd) {
  const int size = GetParam();
  const auto errors = on_threads(size, [&](Communicator& comm) {
    for (const std::size_t numel : {std::size_t{3}, std::size_t{300'000}}) {
      std::vector<float> shard(numel);
      for (std::size_t i = 0; i < numel; ++i) {
        shard[i] = sample(comm.rank(), 1, static_cast<std::int64_t>(i));
      }
      const auto bytes = static_cast<std::int64_t>(numel * 4) * size;
      const std::vector<BufferPtr> targets = {
          comm.allocate_shared(bytes), comm.allocate(bytes), comm.allocate(bytes)};
      for (const BufferPtr& full : targets) {
        comm.all_gather("weights", std::as_bytes(std::span(shard)), full).wait();
        for (std::size_t i = 0; i < numel * static_cast<std::size_t>(size); ++i) {
          ASSERT_EQ(
              full->as<float>()[i],
              sample(
                  static_cast<std::int64_t>(i / numel), 1, static_cast<std::int64_t>(i % numel)));
        }
      }
    }
  });
  expect_no_errors(errors);
}

TEST_P(Ranks, AllToAllTransposes) {
  const auto size = static_cast<std::size_t>(GetParam());
  const auto errors = on_threads(GetParam(), [&](Communicator& comm) {
    const auto rank = static_cast<std::size_t>(comm.rank());
    for (const std::size_t part : {std::size_t{1}, std::size_t{100'001}}) {
      std::vector<std::uint32_t> input(part * size);
      std::vector<std::uint32_t> output(part * size);
      for (std::size_t i = 0; i < input.size(); ++i) {
        input[i] = static_cast<std::uint32_t>(rank * 1'000'000 + i);
      }
      comm.all_to_all(
              "parts", std::as_bytes(std::span(input)), std::as_writable_bytes(std::span(output)))
          .wait();
      for (std::size_t i = 0; i < output.size(); ++i) {
        ASSERT_EQ(output[i], i / part * 1'000'000 + rank * part + i % part);
      }
    }
  });
  expect_no_errors(errors);
}

TEST_P(Ranks, BroadcastAndGatheredValuesReachAll) {
  const int size = GetParam();
  const auto errors = on_threads(size, [&](Communicator& comm) {
    for (const std::size_t numel : {std::size_t{2}, std::size_t{300'000}}) {
      for (std::int64_t root = 0; root < size; ++root) {
        std::vector<float> values(numel, static_cast<float>(comm.rank()));
        comm.broadcast("seed", std::as_writable_bytes(std::span(values)), root).wait();
        ASSERT_EQ(values, std::vector<float>(numel, static_cast<float>(root)));
      }
    }
    const std::vector<double> mine = {static_cast<double>(comm.rank()), 0.1};
    const std::vector<double> all = comm.gather_values("counts", mine);
    ASSERT_EQ(all.size(), static_cast<std::size_t>(2 * size));
    for (std::size_t r = 0; r < static_cast<std::size_t>(size); ++r) {
      EXPECT_EQ(all[2 * r], static_cast<double>(r));
      EXPECT_EQ(all[2 * r + 1], 0.1);
    }
  });
  expect_no_errors(errors);
}

class DelayedRanks : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Sizes, DelayedRanks, ::testing::Values(2, 3));

TEST_P(DelayedRanks, GiveTheSameBits) {
  const int size = GetParam();
  const std::vector<Bytes> expected = exercise_on_threads(size);
  std::vector<std::unique_ptr<Communicator>> delayed;
  for (auto& rank : make_thread_group(size)) {
    delayed.push_back(
        make_delaying_communicator(std::move(rank), 11, std::chrono::microseconds(800)));
  }
  std::vector<Bytes> results(static_cast<std::size_t>(size));
  const auto errors = on_ranks(std::move(delayed), [&](Communicator& comm) {
    results[static_cast<std::size_t>(comm.rank())] = Exercise(comm).run();
  });
  expect_no_errors(errors);
  EXPECT_EQ(results, expected);
}

TEST(Local, GivesWhatOneThreadGives) {
  const std::unique_ptr<Communicator> local = make_local_communicator();
  EXPECT_EQ(Exercise(*local).run(), exercise_on_threads(1).front());
}

TEST(Messages, PassBothWaysAtOnceWhateverIsWaitedForFirst) {
  const auto errors = on_threads(2, [](Communicator& comm) {
    const std::int64_t other = 1 - comm.rank();
    std::vector<float> mine(900'000, static_cast<float>(comm.rank()));
    std::vector<float> theirs(mine.size());
    InFlight sent = comm.send("activations", std::as_bytes(std::span(mine)), other);
    InFlight got = comm.recv("activations", std::as_writable_bytes(std::span(theirs)), other);
    sent.wait();
    got.wait();
    ASSERT_EQ(theirs, std::vector<float>(mine.size(), static_cast<float>(other)));
  });
  expect_no_errors(errors);
}

TEST(Messages, DifferingSizesAreNamedOnBothSides) {
  const auto errors = on_threads(2, [](Communicator& comm) {
    std::vector<std::byte> bytes(comm.rank() == 0 ? 12 : 8);
    if (comm.rank() == 0) {
      comm.send("x", bytes, 1).wait();
      comm.barrier("after");
    } else {
      comm.recv("y", bytes, 0).wait();
    }
  });
  expect_words({errors[1]}, {"rank 0 sent 12 bytes as 'x'", "rank 1 receives 8 bytes as 'y'"});
  expect_words({errors[0]}, {"rank 0 sent 12 bytes as 'x'"});
}

TEST(Agreement, DifferentOperationsAreNamedOnBothSides) {
  const auto errors = on_threads(3, [](Communicator& comm) {
    comm.barrier("start");
    std::vector<float> values(4);
    if (comm.rank() == 2) {
      comm.barrier("save");
    } else {
      comm.all_reduce("norms", values).wait();
    }
  });
  expect_words(errors,
               {"operation 1",
                "rank 0 called all_reduce 'norms' (4 floats)",
                "rank 2 called barrier 'save'"});
}

TEST(Agreement, DifferentLabelsSizesAndRangesAreErrors) {
  const auto differ = [](const std::function<void(Communicator&, bool)>& call) {
    const auto errors = on_threads(2, [&](Communicator& comm) { call(comm, comm.rank() == 1); });
    expect_words(errors, {"ranks differ in operation"});
  };
  differ([](Communicator& comm, bool other) { comm.barrier(other ? "a" : "b"); });
  differ([](Communicator& comm, bool other) {
    std::vector<float> values(other ? 5 : 4);
    comm.all_reduce("x", values).wait();
  });
  differ([](Communicator& comm, bool other) { (void)comm.allocate(other ? 100 : 104); });
  differ([](Communicator& comm, bool other) {
    const BufferPtr input = comm.allocate(40);
    const std::int64_t cut = other ? 4 : 6;
    std::vector<float> output(comm.rank() == 0 ? 6 : 6);
    comm.reduce_scatter("x", input, {{0, cut}, {cut, 10}}, output, false).wait();
  });
}

TEST(Failures, AFailingRankIsNamedWithItsReason) {
  std::vector<std::unique_ptr<Communicator>> ranks = make_thread_group(3);
  ranks[1] = make_failing_communicator(std::move(ranks[1]), {.operation = "all_reduce", .at = 2});
  const auto began = std::chrono::steady_clock::now();
  const auto errors = on_ranks(std::move(ranks), [](Communicator& comm) {
    std::vector<float> values(1000);
    for (int i = 0; i < 5; ++i) {
      comm.all_reduce("norms", values).wait();
    }
  });
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - began;
  EXPECT_LT(elapsed.count(), 2.0);
  expect_words({errors[0]}, {"rank 1", "was made to fail (call 2)"});
  expect_words({errors[1]}, {"all_reduce 'norms' was made to fail (call 2)"});
  expect_words({errors[2]}, {"rank 1", "was made to fail (call 2)"});
}

TEST(Failures, ARankThatEndsEarlyIsNamed) {
  const auto errors = on_threads(2, [](Communicator& comm) {
    comm.barrier("start");
    comm.note("saving");
    if (comm.rank() == 0) {
      comm.barrier("end");
    }
  });
  expect_words({errors[0]},
               {"rank 1",
                "has ended after operation 0, barrier 'start'",
                "busy with saving",
                "barrier 'end'"});
}

TEST(Failures, TheFirstToFailIsNamedAlsoByThoseThatComeLate) {
  const auto errors = on_threads(3, [](Communicator& comm) {
    if (comm.rank() == 2) {
      throw Error(ErrorKind::kData, "row 17 is broken");
    }
    if (comm.rank() == 1) {  // rank 0 has failed for want of rank 2 by then
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }
    comm.barrier("start");
  });
  for (const std::string& error : {errors[0], errors[1]}) {
    EXPECT_TRUE(error.starts_with("rank 2 ")) << error;
    expect_words({error}, {"failed before its first operation: row 17 is broken"});
  }
}

TEST(Failures, AFailedCommunicatorStaysFailed) {
  const auto errors = on_threads(2, [](Communicator& comm) {
    if (comm.rank() == 0) {
      comm.abort("bad data");
    }
    EXPECT_THROW(comm.barrier("one"), Error);
    comm.barrier("two");
  });
  expect_words(errors, {"bad data"});
}

TEST(Memory, MoreThanThereIsIsRefusedOnAllRanksAndTheGroupGoesOn) {
  const auto errors = on_threads(2, [](Communicator& comm) {
    try {
      (void)comm.allocate(std::int64_t{1} << 50);
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kMemory);
      expect_words({error.what()}, {"bytes are needed"});
    }
    comm.barrier("still here");
  });
  expect_no_errors(errors);
}

TEST(Memory, IsZeroedAlignedAndReturned) {
  const auto errors = on_threads(2, [](Communicator& comm) {
    for (int i = 0; i < 300; ++i) {
      const BufferPtr buffer = comm.allocate(std::int64_t{1} << 20);
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % 64, 0U);
      ASSERT_EQ(buffer->as<float>().front(), 0.0F);
      ASSERT_EQ(buffer->as<float>().back(), 0.0F);
      buffer->as<float>().back() = 1.0F;
    }
  });
  expect_no_errors(errors);
}

}  // namespace
}  // namespace zeroth::comm
