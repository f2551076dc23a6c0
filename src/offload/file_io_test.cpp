#include "offload/file_io.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <span>

#include "base/error.h"
#include "offload/pages.h"
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace zeroth::offload {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kBytes = 6 * (1 << 20) + 3 * kAlignment;  // more than a ring holds

fs::path folder() {
  return fs::temp_directory_path();
}

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kDisk);
    return error.what();
  }
  return "";
}

class Io : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const IoOptions options{.block_bytes = 100'000, .depth = 4, .threads = 3};
    io_ = GetParam() == std::string("threads") ? make_thread_io(options) : make_uring_io(options);
    if (io_ == nullptr) {
      GTEST_SKIP() << "needs io_uring";
    }
  }

  std::unique_ptr<FileIo> io_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, Io, ::testing::Values("threads", "uring"), [](const auto& test) {
  return std::string(test.param);
});

TEST_P(Io, WhatWasWrittenIsRead) {
  const SwapFile file(folder(), 2 * kBytes);
  const Pages out(kBytes);
  const Pages in(kBytes);
  const std::span numbers(reinterpret_cast<std::int32_t*>(out.data()),
                          static_cast<std::size_t>(out.bytes()) / sizeof(std::int32_t));
  std::iota(numbers.begin(), numbers.end(), 7);
  io_->write({&file, kBytes, out.data(), kBytes}).wait();
  io_->read({&file, kBytes, in.data(), kBytes}).wait();
  EXPECT_EQ(std::memcmp(in.data(), out.data(), kBytes), 0);
}

// In any order, and some never waited for by hand.
TEST_P(Io, ManyAtOnceFindTheirPlaces) {
  constexpr std::int64_t kPart = 16 * kAlignment;
  constexpr int kParts = 50;
  const SwapFile file(folder(), kPart * kParts);
  const Pages out(kPart * kParts);
  const Pages in(kPart * kParts);
  std::vector<InFlight> writes;
  for (int part = 0; part < kParts; ++part) {
    std::memset(out.data() + part * kPart, part + 1, kPart);
    writes.push_back(io_->write({&file, part * kPart, out.data() + part * kPart, kPart}));
  }
  for (int part = kParts; part-- > 0;) {
    writes[static_cast<std::size_t>(part)].wait();
  }
  {
    std::vector<InFlight> reads;
    for (int part = 0; part < kParts; ++part) {
      reads.push_back(io_->read({&file, part * kPart, in.data() + part * kPart, kPart}));
    }
  }
  EXPECT_EQ(std::memcmp(in.data(), out.data(), kPart * kParts), 0);
}

TEST_P(Io, AFileThatWasCutIsNamed) {
  const SwapFile file(folder(), kBytes);
  ASSERT_EQ(::ftruncate(file.descriptor(), kBytes / 2 / kAlignment * kAlignment), 0);
  const Pages in(kBytes);
  InFlight ticket = io_->read({&file, 0, in.data(), kBytes});
  const std::string message = message_of([&] { ticket.wait(); });
  EXPECT_NE(message.find("the swap file in " + folder().string()), std::string::npos) << message;
  EXPECT_NE(message.find("it was cut"), std::string::npos) << message;
}

TEST_P(Io, AFailingWriteIsNamed) {
  SwapFile file(folder(), kBytes);
  const int read_only = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::dup3(read_only, file.descriptor(), O_CLOEXEC), file.descriptor());
  ::close(read_only);
  const Pages out(kBytes);
  InFlight ticket = io_->write({&file, 0, out.data(), kBytes});
  EXPECT_NE(message_of([&] { ticket.wait(); }).find("cannot write"), std::string::npos);
}

// Ends with 0 if the error names the setting: under a bound on address space the system starts no
// more threads, and those that run must be joined.
[[noreturn]] void start_too_many_threads() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = pages * static_cast<rlim_t>(kAlignment) + (rlim_t{64} << 20);
  const rlimit bound{.rlim_cur = bytes, .rlim_max = bytes};
  ::setrlimit(RLIMIT_AS, &bound);
  const std::string message = message_of([] { (void)make_thread_io({.threads = 100'000}); });
  std::_Exit(message.find("aio.intra_op_parallelism") != std::string::npos ? 0 : 1);
}

TEST(ThreadIo, ThreadsThatTheSystemRefusesAreAnError) {
  EXPECT_EXIT(start_too_many_threads(), ::testing::ExitedWithCode(0), "");
}

TEST_P(Io, WhatIsNotAlignedIsAnErrorOfOurs) {
  const SwapFile file(folder(), kBytes);
  const Pages out(kBytes);
  EXPECT_THROW((void)io_->write({&file, 1, out.data(), kAlignment}), Error);
  EXPECT_THROW((void)io_->write({&file, 0, out.data(), 100}), Error);
  EXPECT_THROW((void)io_->read({&file, kBytes, out.data(), kAlignment}), Error);
}

TEST(SwapFile, LeavesNothingBehindAndTakesItsRoom) {
  const auto names = [] {
    return std::distance(fs::directory_iterator(folder()), fs::directory_iterator());
  };
  const auto before = names();
  const SwapFile file(folder(), 5000);
  EXPECT_EQ(file.bytes(), 2 * kAlignment);
  EXPECT_EQ(names(), before);
  EXPECT_EQ(::lseek(file.descriptor(), 0, SEEK_END), 2 * kAlignment);
}

TEST(SwapFile, WrongFoldersAreNamed) {
  const auto made_in = [](const fs::path& place, std::int64_t bytes) {
    return message_of([&] { const SwapFile file(place, bytes); });
  };
  EXPECT_NE(made_in("/nowhere/at/all", 1).find("does not exist"), std::string::npos);
  EXPECT_NE(made_in("/proc/self/exe", 1).find("is not a folder"), std::string::npos);
  EXPECT_NE(made_in("/proc/self", 1).find("cannot make a file"), std::string::npos);
  const std::string full = made_in(folder(), std::int64_t{1} << 50);
  EXPECT_NE(full.find("no room for"), std::string::npos) << full;
  EXPECT_NE(full.find("bytes are free"), std::string::npos) << full;
}

}  // namespace
}  // namespace zeroth::offload
