#include <csignal>
#include <cstdlib>
#include <random>

#include "e2e/checkpoints.h"
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

// SIGKILL at random moments of a run, a rank or the front, and on from the newest checkpoint each
// time: in the end the weights are those of the run that nobody touched, bit by bit.
namespace zeroth::e2e {
namespace {

namespace fs = std::filesystem;

// ZEROTH_TEST_KILLS=100 for the whole proof (tests/processes/kill_test.sh).
int num_kills() {
  const char* const value = std::getenv("ZEROTH_TEST_KILLS");
  return value == nullptr ? 8 : std::atoi(value);
}

class Killed : public Checkpoints {
 protected:
  [[nodiscard]] Words words(const std::string& out, const std::string& from) const {
    return long_run(out,
                    {"--ranks",
                     "2",
                     "--zero_stage",
                     "2",
                     "--bf16",
                     "--finetuning_type",
                     "full",
                     "--max_steps",
                     std::to_string(updates_),
                     "--save_steps",
                     "2",
                     "--save_total_limit",
                     "2",
                     "--resume_from_checkpoint",
                     from});
  }

  // The ranks hold the folder's lock until the kernel has ended them.
  [[nodiscard]] bool locked() const {
    const int lock = ::open(path("out/.zeroth.lock").c_str(), O_RDWR);
    if (lock < 0) {
      return false;
    }
    const bool free = ::flock(lock, LOCK_EX | LOCK_NB) == 0;
    ::close(lock);
    return !free;
  }

  [[nodiscard]] bool half_written() const {
    for (const fs::directory_entry& entry : fs::directory_iterator(path("out"))) {
      if (entry.path().extension() == ".partial") {
        return true;
      }
    }
    return false;
  }

  // Half of the moments are sought in a save: when its folder appears, and up to a save's length
  // later.
  void wait_for_moment(bool in_save, pid_t front) {
    std::uniform_int_distribution<int> anywhere(0, 900'000);  // microseconds
    std::uniform_int_distribution<int> within(0, 12'000);
    if (!in_save) {
      ::usleep(static_cast<useconds_t>(anywhere(random_)));
      return;
    }
    for (int i = 0; i < 200'000 && ::kill(front, 0) == 0 && !(has("out") && half_written()); ++i) {
      ::usleep(50);
    }
    ::usleep(static_cast<useconds_t>(within(random_)));
  }

  int updates_ = 60;
  std::mt19937 random_{20261130};
};

TEST_F(Killed, AtAnyMomentTheRunGoesOnToTheSameBits) {
  (void)good(words("whole", "auto"));
  int inside = 0;
  int kills = 0;
  while (kills < num_kills()) {
    const pid_t front =
        testing::start(invocation(words("out", "auto")), path("stdout"), path("stderr"));
    wait_for_moment(kills % 2 == 0, front);
    ::kill(front, SIGKILL);  // its ranks die with it
    const int code = testing::wait_for(front);
    if (code == 0) {  // it had come to its end: again from the beginning
      EXPECT_TRUE(weights_in("out") == weights_in("whole"));
      fs::remove_all(path("out"));
      continue;
    }
    ASSERT_EQ(code, 128 + SIGKILL) << content_of(path("stderr"));
    ASSERT_TRUE(soon([&] { return !locked(); }));
    ++kills;
    inside += has("out") && half_written() ? 1 : 0;
  }
  const testing::Outcome last = good(words("out", "auto"));
  EXPECT_TRUE(weights_in("out") == weights_in("whole")) << last.errors;
  EXPECT_GE(inside, num_kills() * 3 / 10);
  std::printf("%d kills, %d of them inside a save\n", kills, inside);
}

}  // namespace
}  // namespace zeroth::e2e
