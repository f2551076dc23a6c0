#include "comm/watched_communicator.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace zeroth::comm {
namespace {

using Clock = std::chrono::steady_clock;

// Outlives the communicator in operations that are still in flight.
struct Link {
  Watch watch;
  Clock::time_point free_at{};
};

class WatchedWork : public InFlight::Work {
 public:
  WatchedWork(std::shared_ptr<Link> link, Traffic traffic, InFlight inner)
      : link_(std::move(link)), traffic_(std::move(traffic)), inner_(std::move(inner)) {
    link_->free_at = std::max(link_->free_at, Clock::now()) + link_->watch.delay;
    arrives_ = link_->free_at;
  }

  void wait() override {
    inner_.wait();
    if (link_->watch.delay.count() > 0) {
      std::this_thread::sleep_until(arrives_);
    }
    if (link_->watch.waited) {
      link_->watch.waited(traffic_);
    }
  }

 private:
  std::shared_ptr<Link> link_;
  Traffic traffic_;
  InFlight inner_;
  Clock::time_point arrives_;
};

class WatchedCommunicator : public Communicator {
 public:
  WatchedCommunicator(std::shared_ptr<Communicator> inner, Watch watch)
      : inner_(std::move(inner)), link_(std::make_shared<Link>()) {
    link_->watch = std::move(watch);
  }

  [[nodiscard]] std::int64_t rank() const noexcept override { return inner_->rank(); }

  [[nodiscard]] std::int64_t size() const noexcept override { return inner_->size(); }

  [[nodiscard]] HostPlace on_host() const noexcept override { return inner_->on_host(); }

  [[nodiscard]] BufferPtr allocate(std::int64_t bytes) override {
    tell({"allocate", "", bytes});
    return inner_->allocate(bytes);
  }

  [[nodiscard]] BufferPtr allocate_shared(std::int64_t bytes) override {
    tell({"allocate_shared", "", bytes});
    return inner_->allocate_shared(bytes);
  }

  [[nodiscard]] InFlight reduce_scatter(const std::string& label,
                                        BufferPtr input,
                                        std::vector<Span> ranges,
                                        std::span<float> output,
                                        bool accumulate,
                                        NumberType type) override {
    std::int64_t numbers = 0;
    for (const Span& range : ranges) {
      numbers += range.end - range.begin;
    }
    const auto width = static_cast<std::int64_t>(bytes_of(type));
    return watched({"reduce_scatter", label, numbers * width}, [&] {
      return inner_->reduce_scatter(
          label, std::move(input), std::move(ranges), output, accumulate, type);
    });
  }

  [[nodiscard]] InFlight all_gather(const std::string& label,
                                    std::span<const std::byte> shard,
                                    BufferPtr full,
                                    Placement placement) override {
    return watched({"all_gather", label, size_of(shard)},
                   [&] { return inner_->all_gather(label, shard, std::move(full), placement); });
  }

  [[nodiscard]] InFlight all_reduce(const std::string& label, std::span<float> values) override {
    return watched({"all_reduce", label, size_of(std::as_bytes(values))},
                   [&] { return inner_->all_reduce(label, values); });
  }

  [[nodiscard]] InFlight broadcast(const std::string& label,
                                   std::span<std::byte> bytes,
                                   std::int64_t root) override {
    return watched({"broadcast", label, size_of(bytes)},
                   [&] { return inner_->broadcast(label, bytes, root); });
  }

  [[nodiscard]] InFlight send(const std::string& label,
                              std::span<const std::byte> bytes,
                              std::int64_t to) override {
    return watched({"send", label, size_of(bytes)}, [&] { return inner_->send(label, bytes, to); });
  }

  [[nodiscard]] InFlight recv(const std::string& label,
                              std::span<std::byte> bytes,
                              std::int64_t from) override {
    return watched({"recv", label, 0}, [&] { return inner_->recv(label, bytes, from); });
  }

  [[nodiscard]] InFlight all_to_all(const std::string& label,
                                    std::span<const std::byte> input,
                                    std::span<std::byte> output) override {
    return watched({"all_to_all", label, size_of(input)},
                   [&] { return inner_->all_to_all(label, input, output); });
  }

  void barrier(const std::string& label) override {
    tell({"barrier", label, 0});
    inner_->barrier(label);
  }

  void abort(const std::string& reason) noexcept override { inner_->abort(reason); }

 protected:
  void tell_activity(const std::string& activity) noexcept override { inner_->note(activity); }

 private:
  static std::int64_t size_of(std::span<const std::byte> bytes) noexcept {
    return static_cast<std::int64_t>(bytes.size());
  }

  void tell(const Traffic& traffic) const {
    if (link_->watch.started) {
      link_->watch.started(*inner_, traffic);
    }
  }

  template <typename Start>
  [[nodiscard]] InFlight watched(Traffic traffic, const Start& start) const {
    tell(traffic);
    return InFlight(std::make_unique<WatchedWork>(link_, std::move(traffic), start()));
  }

  std::shared_ptr<Communicator> inner_;
  std::shared_ptr<Link> link_;
};

}  // namespace

std::unique_ptr<Communicator> make_watched_communicator(std::shared_ptr<Communicator> inner,
                                                        Watch watch) {
  return std::make_unique<WatchedCommunicator>(std::move(inner), std::move(watch));
}

}  // namespace zeroth::comm
