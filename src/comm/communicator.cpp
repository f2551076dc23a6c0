#include "comm/communicator.h"

#include <cstring>
#include <utility>

#include "base/check.h"

namespace zeroth::comm {
namespace {

// Private memory that a gather fills.
class PrivateBuffer : public Buffer {
 public:
  explicit PrivateBuffer(std::size_t bytes) : bytes_(bytes) {}

  [[nodiscard]] std::byte* data() const noexcept override { return bytes_.data(); }

  [[nodiscard]] std::int64_t bytes() const noexcept override {
    return static_cast<std::int64_t>(bytes_.size());
  }

 private:
  mutable std::vector<std::byte> bytes_;
};

}  // namespace

BufferPtr make_private_buffer(std::size_t bytes) {
  return std::make_shared<PrivateBuffer>(bytes);
}

void Communicator::note(const std::string& activity) {
  tell_activity(activity);
  if (observer_) {
    observer_(activity);
  }
}

void Communicator::tell_activity(const std::string& /*activity*/) noexcept {
}

void Communicator::abort(const std::string& /*reason*/) noexcept {
}

std::vector<double> ValuesInFlight::wait() {
  ZEROTH_CHECK(all_ != nullptr, "values are waited for that nobody sends");
  work_.wait();
  const std::span<double> gathered = all_->as<double>();
  return {gathered.begin(), gathered.end()};
}

ValuesInFlight Communicator::start_gathering_values(const std::string& label,
                                                    std::span<const double> values) {
  auto all = make_private_buffer(values.size_bytes() * static_cast<std::size_t>(size()));
  InFlight work = all_gather(label, std::as_bytes(values), all);
  return {std::move(work), std::move(all)};
}

std::vector<double> Communicator::gather_values(const std::string& label,
                                                std::span<const double> values) {
  return start_gathering_values(label, values).wait();
}

}  // namespace zeroth::comm
