#include <csignal>
#include <cstdlib>
#include <random>

#include "e2e/checkpoints.h"
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

  // A child that ended stays until it is waited for.
  [[nodiscard]] static bool ended(pid_t process) {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == process;
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

  // The folder of a checkpoint that is being written, by its number on the disk; 0: there is none.
  [[nodiscard]] ino_t half_written() const {
    std::error_code error;
    for (fs::directory_iterator entry(path("out"), error), end; !error && entry != end;
         entry.increment(error)) {
      struct stat status {};

      if (entry->path().extension() == ".partial" && ::stat(entry->path().c_str(), &status) == 0) {
        return status.st_ino;
      }
    }
    return 0;
  }

  // Half of the moments are sought in a save: when its folder appears, and up to a save's length
  // later.
  void wait_for_moment(bool in_save, pid_t front, ino_t before) {
    std::uniform_int_distribution<int> anywhere(0, 900'000);  // microseconds
    std::uniform_int_distribution<int> within(0, 12'000);
    if (!in_save) {
      ::usleep(static_cast<useconds_t>(anywhere(random_)));
      return;
    }
    const auto begun = [&] {
      const ino_t now = half_written();
      return now != 0 && now != before;
    };
    for (int i = 0; i < 200'000 && !ended(front) && !begun(); ++i) {
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
    const ino_t before = half_written();  // left by an earlier kill, until the run clears it away
    const pid_t front =
        testing::start(invocation(words("out", "auto")), path("stdout"), path("stderr"));
    wait_for_moment(kills % 2 == 0, front, before);
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
    const ino_t after = half_written();
    inside += after != 0 && after != before ? 1 : 0;
  }
  const testing::Outcome last = good(words("out", "auto"));
  EXPECT_TRUE(weights_in("out") == weights_in("whole")) << last.errors;
  EXPECT_GE(inside, num_kills() * 3 / 10);
  std::printf("%d kills, %d of them inside a save\n", kills, inside);
}

}  // namespace
}  // namespace zeroth::e2e
