#include "comm/testing.h"

#include <functional>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "comm/watched_communicator.h"
#include <fmt/format.h>

namespace zeroth::comm {

std::unique_ptr<Communicator> make_delaying_communicator(std::unique_ptr<Communicator> inner,
                                                         std::uint64_t seed,
                                                         std::chrono::microseconds longest) {
  RandomStream random(seed, static_cast<std::uint64_t>(inner->rank()));
  const auto delay = [random, longest](auto&&...) mutable {
    const auto most = static_cast<std::uint64_t>(longest.count()) + 1;
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(most)));
  };
  return make_watched_communicator(std::move(inner), {.started = delay, .waited = {}});
}

std::unique_ptr<Communicator> make_failing_communicator(std::unique_ptr<Communicator> inner,
                                                        Failure failure) {
  const auto fail = [failure = std::move(failure), calls = 0](Communicator& communicator,
                                                              const Traffic& traffic) mutable {
    if (traffic.operation != failure.operation || ++calls != failure.at) {
      return;
    }
    const std::string reason =
        fmt::format("{} '{}' was made to fail (call {})", traffic.operation, traffic.label, calls);
    communicator.abort(reason);
    throw Error(ErrorKind::kCommunication, reason);
  };
  return make_watched_communicator(std::move(inner), {.started = fail, .waited = {}});
}

}  // namespace zeroth::comm
