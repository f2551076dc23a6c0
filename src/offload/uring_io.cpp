#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "base/error.h"
#include "offload/blocks.h"
#include <fmt/format.h>
#include <liburing.h>

namespace zeroth::offload {
namespace {

struct Progress {
  std::size_t left = 0;  // blocks
  std::string failure;
};

struct Request {
  Block block;
  std::shared_ptr<Progress> progress;
};

// A ring with at most `depth` requests in the kernel; others wait here for their turn, which comes
// whenever the owner starts or waits for something.
class Ring {
 public:
  explicit Ring(const IoOptions& options)
      : depth_(static_cast<std::size_t>(std::max<std::int64_t>(options.depth, 1))),
        submits_singly_(options.submits_singly),
        refills_(options.refills) {
    usable_ = ::io_uring_queue_init(static_cast<unsigned>(depth_), &ring_, 0) == 0;
  }

  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  ~Ring() {
    if (usable_) {
      ::io_uring_queue_exit(&ring_);
    }
  }

  [[nodiscard]] bool usable() const noexcept { return usable_; }

  [[nodiscard]] std::size_t depth() const noexcept { return depth_; }

  void add(Request request) { waiting_.push_back(std::move(request)); }

  // Takes what is done, without waiting, and starts what has its turn.
  void advance() {
    io_uring_cqe* done = nullptr;
    while (in_kernel_ > 0 && ::io_uring_peek_cqe(&ring_, &done) == 0) {
      take(done);
    }
    fill();
  }

  void finish(const Progress& progress) {
    advance();
    while (progress.left > 0) {
      io_uring_cqe* done = nullptr;
      const int error = ::io_uring_wait_cqe(&ring_, &done);
      if (error == -EINTR) {
        continue;
      }
      if (error < 0) {
        throw Error(ErrorKind::kDisk, fmt::format("io_uring: {}", std::strerror(-error)));
      }
      take(done);
      advance();
    }
  }

 private:
  void fill() {
    if (!refills_ && in_kernel_ > 0) {
      return;
    }
    bool added = false;
    while (in_kernel_ < depth_ && !waiting_.empty()) {
      io_uring_sqe* const entry = ::io_uring_get_sqe(&ring_);
      if (entry == nullptr) {
        break;
      }
      prepare(*entry, new Request(std::move(waiting_.front())));
      waiting_.pop_front();
      ++in_kernel_;
      added = true;
      if (submits_singly_) {
        submit();
      }
    }
    if (added && !submits_singly_) {
      submit();
    }
  }

  // The request belongs to the kernel until it comes back in take().
  static void prepare(io_uring_sqe& entry, Request* request) {
    const Block& block = request->block;
    const auto size = static_cast<unsigned>(block.bytes);
    const auto offset = static_cast<std::uint64_t>(block.offset);
    if (block.direction == Direction::kRead) {
      ::io_uring_prep_read(&entry, block.file->descriptor(), block.memory, size, offset);
    } else {
      ::io_uring_prep_write(&entry, block.file->descriptor(), block.memory, size, offset);
    }
    ::io_uring_sqe_set_data(&entry, request);
  }

  void submit() {
    int result = 0;
    do {
      result = ::io_uring_submit(&ring_);
    } while (result == -EINTR || result == -EAGAIN);
    if (result < 0) {
      throw Error(ErrorKind::kDisk, fmt::format("io_uring: {}", std::strerror(-result)));
    }
  }

  void take(io_uring_cqe* done) {
    const std::unique_ptr<Request> request(static_cast<Request*>(::io_uring_cqe_get_data(done)));
    const std::int64_t result = done->res;
    ::io_uring_cqe_seen(&ring_, done);
    --in_kernel_;
    if (result == -EINTR || result == -EAGAIN) {
      waiting_.push_front(*request);
      return;
    }
    const std::string failure = failure_of(request->block, result);
    Progress& progress = *request->progress;
    if (failure.empty() && result < request->block.bytes) {
      waiting_.push_front({request->block.after(result), request->progress});
      return;
    }
    progress.failure = progress.failure.empty() ? failure : progress.failure;
    --progress.left;
  }

  std::size_t depth_;
  bool submits_singly_;
  bool refills_;
  io_uring ring_{};
  bool usable_ = false;
  std::size_t in_kernel_ = 0;
  std::deque<Request> waiting_;
};

class UringWork : public InFlight::Work {
 public:
  UringWork(std::shared_ptr<Ring> ring, std::shared_ptr<Progress> progress)
      : ring_(std::move(ring)), progress_(std::move(progress)) {}

  void wait() override {
    ring_->finish(*progress_);
    if (!progress_->failure.empty()) {
      throw Error(ErrorKind::kDisk, progress_->failure);
    }
  }

 private:
  std::shared_ptr<Ring> ring_;
  std::shared_ptr<Progress> progress_;
};

class UringIo : public FileIo {
 public:
  UringIo(std::shared_ptr<Ring> ring, std::int64_t block_bytes)
      : ring_(std::move(ring)), block_bytes_(block_bytes) {}

  [[nodiscard]] std::string name() const override {
    return fmt::format("io_uring, {} requests deep", ring_->depth());
  }

  [[nodiscard]] InFlight read(const Transfer& transfer) override {
    return start(transfer, Direction::kRead);
  }

  [[nodiscard]] InFlight write(const Transfer& transfer) override {
    return start(transfer, Direction::kWrite);
  }

 private:
  InFlight start(const Transfer& transfer, Direction direction) {
    const std::vector<Block> blocks = blocks_of(transfer, direction, block_bytes_);
    const auto progress =
        std::make_shared<Progress>(Progress{.left = blocks.size(), .failure = ""});
    for (const Block& block : blocks) {
      ring_->add({block, progress});
    }
    ring_->advance();
    return InFlight(std::make_unique<UringWork>(ring_, progress));
  }

  std::shared_ptr<Ring> ring_;
  std::int64_t block_bytes_;
};

}  // namespace

std::unique_ptr<FileIo> make_uring_io(const IoOptions& options) {
  auto ring = std::make_shared<Ring>(options);
  return ring->usable() ? std::make_unique<UringIo>(std::move(ring), options.block_bytes) : nullptr;
}

}  // namespace zeroth::offload
