#include <exception>
#include <utility>

#include "base/check.h"
#include "comm/host_group.h"
#include "comm/make.h"
#include "comm/mpi/mpi_operations.h"
#include "comm/mpi/mpi_session.h"
#include "comm/mpi/start_limit.h"
#include "comm/shared_communicator.h"
#include <fmt/format.h>

namespace zeroth::comm {
namespace {

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator(std::shared_ptr<MpiSession> session, std::unique_ptr<SharedCommunicator> host)
      : session_(std::move(session)), host_(std::move(host)) {}

  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  ~MpiCommunicator() override {
    if (queue().broken() || std::uncaught_exceptions() > 0) {
      session_->leave_unfinished();
    }
  }

  [[nodiscard]] std::int64_t rank() const noexcept override { return session_->rank(); }

  [[nodiscard]] std::int64_t size() const noexcept override { return session_->size(); }

  [[nodiscard]] HostPlace on_host() const noexcept override {
    return {host_->rank(), host_->size()};
  }

  [[nodiscard]] BufferPtr allocate(std::int64_t bytes) override {
    agree({"allocate", "", fmt::format("{} bytes", bytes)});
    return host_->allocate(bytes);
  }

  [[nodiscard]] BufferPtr allocate_shared(std::int64_t bytes) override {
    agree({"allocate_shared", "", fmt::format("{} bytes", bytes)});
    return host_->allocate_shared(bytes);
  }

  [[nodiscard]] InFlight reduce_scatter(const std::string& label,
                                        BufferPtr input,
                                        std::vector<Span> ranges,
                                        std::span<float> output,
                                        bool accumulate,
                                        NumberType type) override {
    std::shared_ptr<SharedBuffer> shared = host_->own(input);
    ZEROTH_CHECK(shared != nullptr && !shared->is_for_all(), "the input comes from allocate()");
    check_ranges(ranges, *shared, output, type, rank(), size());
    const Call call{"reduce_scatter", label, describe_ranges(ranges, type)};
    return start<MpiReduceScatter>(
        call, std::move(shared), std::move(ranges), output, accumulate, type);
  }

  [[nodiscard]] InFlight all_gather(const std::string& label,
                                    std::span<const std::byte> shard,
                                    BufferPtr full,
                                    Placement placement) override {
    placement = checked_placement(placement, shard.size(), *full, size());
    const std::string sizes = describe_gather(shard.size(), placement);
    std::shared_ptr<SharedBuffer> shared = host_->own(full);
    if (shared != nullptr && shared->is_for_all()) {
      const Call call{
          "all_gather", label, fmt::format("{}, into shared buffer {}", sizes, shared->number())};
      return start<MpiGatherForAll>(call, shard, std::move(shared), placement);
    }
    return start<MpiGather>({"all_gather", label, sizes}, shard, std::move(full), placement);
  }

  [[nodiscard]] InFlight all_reduce(const std::string& label, std::span<float> values) override {
    const Call call{"all_reduce", label, fmt::format("{} floats", values.size())};
    return start<MpiAllReduce>(call, values);
  }

  [[nodiscard]] InFlight broadcast(const std::string& label,
                                   std::span<std::byte> bytes,
                                   std::int64_t root) override {
    ZEROTH_CHECK(root >= 0 && root < size(), "root {} of {} ranks", root, size());
    const Call call{"broadcast", label, fmt::format("{} bytes from rank {}", bytes.size(), root)};
    return start<MpiBroadcast>(call, bytes, static_cast<int>(root));
  }

  [[nodiscard]] InFlight send(const std::string& label,
                              std::span<const std::byte> bytes,
                              std::int64_t to) override {
    ZEROTH_CHECK(to >= 0 && to < size() && to != rank(), "rank {} sends to {}", rank(), to);
    const Call call{"send", label, fmt::format("{} bytes to rank {}", bytes.size(), to)};
    return start<MpiSend>(call, label, bytes, static_cast<int>(to));
  }

  [[nodiscard]] InFlight recv(const std::string& label,
                              std::span<std::byte> bytes,
                              std::int64_t from) override {
    ZEROTH_CHECK(
        from >= 0 && from < size() && from != rank(), "rank {} receives from {}", rank(), from);
    const Call call{"recv", label, fmt::format("{} bytes from rank {}", bytes.size(), from)};
    return start<MpiReceive>(call, label, bytes, static_cast<int>(from));
  }

  [[nodiscard]] InFlight all_to_all(const std::string& label,
                                    std::span<const std::byte> input,
                                    std::span<std::byte> output) override {
    ZEROTH_CHECK_EQ(input.size(), output.size(), "all_to_all");
    ZEROTH_CHECK_EQ(input.size() % static_cast<std::size_t>(size()), std::size_t{0}, "equal parts");
    const Call call{"all_to_all", label, fmt::format("{} bytes", input.size())};
    return start<MpiExchange>(call, input, output);
  }

  void barrier(const std::string& label) override { agree({"barrier", label, ""}); }

  void abort(const std::string& reason) noexcept override { host_->abort(reason); }

 protected:
  void tell_activity(const std::string& activity) noexcept override { host_->note(activity); }

 private:
  [[nodiscard]] CallQueue& queue() const noexcept { return *host_->queue(); }

  template <typename Started, typename... Arguments>
  [[nodiscard]] InFlight start(const Call& call, Arguments&&... arguments) {
    const MpiContext context{.session = session_, .queue = &queue()};
    return queue().start(call,
                         std::make_shared<Started>(context, std::forward<Arguments>(arguments)...));
  }

  void agree(const Call& call) { start<MpiAgreement>(call).wait(); }

  std::shared_ptr<MpiSession> session_;
  std::unique_ptr<SharedCommunicator> host_;
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(
    double start_timeout_s, const std::function<void(const Error&)>& give_up) {
  auto session = [&] {
    const MpiStartLimit limit(start_timeout_s, give_up);
    return std::make_shared<MpiSession>();
  }();
  const std::vector<int>& ranks = session->ranks_of(session->host_of(session->rank()));
  int local_rank = 0;
  while (ranks[static_cast<std::size_t>(local_rank)] != session->rank()) {
    ++local_rank;
  }
  std::unique_ptr<SharedCommunicator> host =
      join_host_group({.run_name = session->run_name(),
                       .rank = local_rank,
                       .size = static_cast<int>(ranks.size()),
                       .start_timeout_s = start_timeout_s,
                       .world_ranks = ranks});
  return std::make_unique<MpiCommunicator>(std::move(session), std::move(host));
}

}  // namespace zeroth::comm
