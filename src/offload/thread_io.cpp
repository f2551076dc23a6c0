#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "offload/blocks.h"
#include <fmt/format.h>
#include <unistd.h>

namespace zeroth::offload {
namespace {

// Empty when the whole block was moved.
std::string move(Block block) {
  while (block.bytes > 0) {
    const auto size = static_cast<std::size_t>(block.bytes);
    const int file = block.file->descriptor();
    const ssize_t moved = block.direction == Direction::kRead
                              ? ::pread(file, block.memory, size, block.offset)
                              : ::pwrite(file, block.memory, size, block.offset);
    if (moved < 0 && errno == EINTR) {
      continue;
    }
    const std::string failure = failure_of(block, moved < 0 ? -errno : moved);
    if (!failure.empty()) {
      return failure;
    }
    block = block.after(moved);
  }
  return "";
}

// Counts a transfer's blocks down.
class Countdown {
 public:
  explicit Countdown(std::size_t blocks) : left_(blocks) {}

  void finish_block(std::string failure) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) {
      failure_ = std::move(failure);
    }
    if (--left_ == 0) {
      done_.notify_all();
    }
  }

  void wait() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return left_ == 0; });
    if (!failure_.empty()) {
      throw Error(ErrorKind::kDisk, failure_);
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  std::size_t left_;
  std::string failure_;
};

class PoolWork : public InFlight::Work {
 public:
  explicit PoolWork(std::shared_ptr<Countdown> blocks) : blocks_(std::move(blocks)) {}

  void wait() override { blocks_->wait(); }

 private:
  std::shared_ptr<Countdown> blocks_;
};

class ThreadIo : public FileIo {
 public:
  explicit ThreadIo(const IoOptions& options) : block_bytes_(options.block_bytes) {
    try {
      for (std::int64_t i = 0; i < options.threads; ++i) {
        threads_.emplace_back([this] { work(); });
      }
    } catch (const std::system_error& error) {
      const std::size_t started = threads_.size();
      end_all();
      throw Error(ErrorKind::kDisk,
                  fmt::format("the system starts {} of the {} threads that are to read and write "
                              "(aio.intra_op_parallelism): {}\n  Ask for fewer, or raise the "
                              "bound on processes (ulimit -u, pids.max).",
                              started,
                              options.threads,
                              error.what()));
    }
  }

  ~ThreadIo() override { end_all(); }

  [[nodiscard]] std::string name() const override {
    return fmt::format("pread and pwrite by {} threads", threads_.size());
  }

  [[nodiscard]] InFlight read(const Transfer& transfer) override {
    return start(transfer, Direction::kRead);
  }

  [[nodiscard]] InFlight write(const Transfer& transfer) override {
    return start(transfer, Direction::kWrite);
  }

 private:
  struct Job {
    Block block;
    std::shared_ptr<Countdown> countdown;
  };

  void end_all() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    there_is_work_.notify_all();
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }

  InFlight start(const Transfer& transfer, Direction direction) {
    const std::vector<Block> blocks = blocks_of(transfer, direction, block_bytes_);
    const auto countdown = std::make_shared<Countdown>(blocks.size());
    if (blocks.empty()) {
      return {};
    }
    {
      const std::lock_guard lock(mutex_);
      for (const Block& block : blocks) {
        jobs_.push_back({block, countdown});
      }
    }
    there_is_work_.notify_all();
    return InFlight(std::make_unique<PoolWork>(countdown));
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      there_is_work_.wait(lock, [this] { return ends_ || !jobs_.empty(); });
      if (jobs_.empty()) {
        return;  // all that was started is done
      }
      const Job job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job.countdown->finish_block(move(job.block));
      lock.lock();
    }
  }

  std::int64_t block_bytes_;
  std::mutex mutex_;
  std::condition_variable there_is_work_;
  std::deque<Job> jobs_;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<FileIo> make_thread_io(const IoOptions& options) {
  return std::make_unique<ThreadIo>(options);
}

}  // namespace zeroth::offload
