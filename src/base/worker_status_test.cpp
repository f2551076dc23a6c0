#include "base/worker_status.h"

#include <string>

#include "base/error.h"
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace zeroth {
namespace {

TEST(WorkerStatus, TheOtherSideReadsWhatWasLeft) {
  const WorkerStatus front = WorkerStatus::create();
  EXPECT_EQ(front.activity(), "");
  EXPECT_EQ(front.failure(), "");
  const std::string failure = "data error: " + std::string(100'000, 'x') + "\n  the end";
  {
    WorkerStatus worker = WorkerStatus::open(::dup(front.descriptor()));
    worker.set_activity("forward of update 12");
    worker.set_activity("step");
    EXPECT_TRUE(worker.set_failure(failure));
  }
  EXPECT_EQ(front.activity(), "step");
  EXPECT_EQ(front.failure(), failure);
}

TEST(WorkerStatus, AnActivityIsCutToItsRoom) {
  WorkerStatus status = WorkerStatus::create();
  status.set_activity(std::string(10'000, 'a'));
  EXPECT_EQ(status.activity(), std::string(4095, 'a'));
  EXPECT_EQ(status.failure(), "");
}

TEST(WorkerStatus, SomethingElseIsNoStatus) {
  EXPECT_THROW((void)WorkerStatus::open(-1), Error);
  const int other = ::open("/dev/null", O_RDWR);
  EXPECT_THROW((void)WorkerStatus::open(other), Error);
  ::close(other);
}

}  // namespace
}  // namespace zeroth
