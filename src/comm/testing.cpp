#include "comm/testing.h"

#include <functional>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include <fmt/format.h>

namespace zeroth::comm {
namespace {

// Hands every call on, after `before` has seen its operation and label.
class WatchedCommunicator : public Communicator {
 public:
  using Before =
      std::function<void(Communicator&, const std::string& operation, const std::string& label)>;

  WatchedCommunicator(std::unique_ptr<Communicator> inner, Before before)
      : inner_(std::move(inner)), before_(std::move(before)) {}

  [[nodiscard]] std::int64_t rank() const noexcept override { return inner_->rank(); }

  [[nodiscard]] std::int64_t size() const noexcept override { return inner_->size(); }

  [[nodiscard]] BufferPtr allocate(std::int64_t bytes) override {
    before_(*inner_, "allocate", "");
    return inner_->allocate(bytes);
  }

  [[nodiscard]] BufferPtr allocate_shared(std::int64_t bytes) override {
    before_(*inner_, "allocate_shared", "");
    return inner_->allocate_shared(bytes);
  }

  [[nodiscard]] InFlight reduce_scatter(const std::string& label,
                                        BufferPtr input,
                                        std::vector<Span> ranges,
                                        std::span<float> output,
                                        bool accumulate) override {
    before_(*inner_, "reduce_scatter", label);
    return inner_->reduce_scatter(label, std::move(input), std::move(ranges), output, accumulate);
  }

  [[nodiscard]] InFlight all_gather(const std::string& label,
                                    std::span<const std::byte> shard,
                                    BufferPtr full) override {
    before_(*inner_, "all_gather", label);
    return inner_->all_gather(label, shard, std::move(full));
  }

  [[nodiscard]] InFlight all_reduce(const std::string& label, std::span<float> values) override {
    before_(*inner_, "all_reduce", label);
    return inner_->all_reduce(label, values);
  }

  [[nodiscard]] InFlight broadcast(const std::string& label,
                                   std::span<std::byte> bytes,
                                   std::int64_t root) override {
    before_(*inner_, "broadcast", label);
    return inner_->broadcast(label, bytes, root);
  }

  [[nodiscard]] InFlight send(const std::string& label,
                              std::span<const std::byte> bytes,
                              std::int64_t to) override {
    before_(*inner_, "send", label);
    return inner_->send(label, bytes, to);
  }

  [[nodiscard]] InFlight recv(const std::string& label,
                              std::span<std::byte> bytes,
                              std::int64_t from) override {
    before_(*inner_, "recv", label);
    return inner_->recv(label, bytes, from);
  }

  [[nodiscard]] InFlight all_to_all(const std::string& label,
                                    std::span<const std::byte> input,
                                    std::span<std::byte> output) override {
    before_(*inner_, "all_to_all", label);
    return inner_->all_to_all(label, input, output);
  }

  void barrier(const std::string& label) override {
    before_(*inner_, "barrier", label);
    inner_->barrier(label);
  }

  void abort(const std::string& reason) noexcept override { inner_->abort(reason); }

 protected:
  void tell_activity(const std::string& activity) noexcept override { inner_->note(activity); }

 private:
  std::unique_ptr<Communicator> inner_;
  Before before_;
};

}  // namespace

std::unique_ptr<Communicator> make_delaying_communicator(std::unique_ptr<Communicator> inner,
                                                         std::uint64_t seed,
                                                         std::chrono::microseconds longest) {
  RandomStream random(seed, static_cast<std::uint64_t>(inner->rank()));
  const auto delay = [random, longest](auto&&...) mutable {
    const auto most = static_cast<std::uint64_t>(longest.count()) + 1;
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(most)));
  };
  return std::make_unique<WatchedCommunicator>(std::move(inner), delay);
}

std::unique_ptr<Communicator> make_failing_communicator(std::unique_ptr<Communicator> inner,
                                                        Failure failure) {
  const auto fail = [failure = std::move(failure), calls = 0](Communicator& communicator,
                                                              const std::string& operation,
                                                              const std::string& label) mutable {
    if (operation != failure.operation || ++calls != failure.at) {
      return;
    }
    const std::string reason =
        fmt::format("{} '{}' was made to fail (call {})", operation, label, calls);
    communicator.abort(reason);
    throw Error(ErrorKind::kCommunication, reason);
  };
  return std::make_unique<WatchedCommunicator>(std::move(inner), fail);
}

}  // namespace zeroth::comm
