#include "comm/shared_communicator.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <utility>

#include "base/check.h"
#include "comm/direct_operations.h"
#include "comm/operations.h"
#include <fmt/format.h>

namespace zeroth::comm {
namespace {

constexpr std::uint64_t kAlignment = kPage;

std::uint64_t as_unsigned(std::int64_t value) {
  ZEROTH_CHECK(value >= 0, "a size of {}", value);
  return static_cast<std::uint64_t>(value);
}

// What goes wrong in `work`; empty: nothing.
std::string failure_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

std::string describe_ranges(const std::vector<Span>& ranges, NumberType type) {
  std::uint64_t print = 0;
  std::int64_t total = 0;
  for (const Span& range : ranges) {
    total += range.end - range.begin;
    for (const std::int64_t border : {range.begin, range.end}) {
      print = (print ^ static_cast<std::uint64_t>(border)) * 0x9E3779B97F4A7C15ULL;
      print ^= print >> 29;
    }
  }
  constexpr std::array<const char*, 3> kNames{"floats", "bf16 numbers", "fp16 numbers"};
  return fmt::format("{} {} in {} ranges, borders {:08x}",
                     total,
                     kNames[static_cast<std::size_t>(type)],
                     ranges.size(),
                     print >> 32);
}

void check_ranges(const std::vector<Span>& ranges,
                  const Buffer& input,
                  std::span<const float> output,
                  NumberType type,
                  std::int64_t rank,
                  std::int64_t size) {
  ZEROTH_CHECK_EQ(static_cast<std::int64_t>(ranges.size()), size, "one range for each rank");
  const auto numel =
      static_cast<std::int64_t>(static_cast<std::size_t>(input.bytes()) / bytes_of(type));
  for (const Span& range : ranges) {
    ZEROTH_CHECK(0 <= range.begin && range.begin <= range.end && range.end <= numel,
                 "range [{}, {}) of {} numbers",
                 range.begin,
                 range.end,
                 numel);
  }
  const Span& own = ranges[static_cast<std::size_t>(rank)];
  ZEROTH_CHECK_EQ(
      own.end - own.begin, static_cast<std::int64_t>(output.size()), "the output's size");
}

Placement checked_placement(Placement placement,
                            std::size_t shard_bytes,
                            const Buffer& full,
                            std::int64_t size) {
  placement.stride = placement.stride == 0 ? shard_bytes : placement.stride;
  const std::size_t last = static_cast<std::size_t>(size - 1) * placement.stride;
  ZEROTH_CHECK(placement.offset + shard_bytes <= std::max(placement.stride, shard_bytes) &&
                   last + placement.offset + shard_bytes <= static_cast<std::size_t>(full.bytes()),
               "{} bytes of each of {} ranks, {} apart from {} on, into a buffer of {}",
               shard_bytes,
               size,
               placement.stride,
               placement.offset,
               full.bytes());
  return placement;
}

std::string describe_gather(std::size_t shard_bytes, const Placement& placement) {
  return placement.stride == shard_bytes
             ? fmt::format("{} bytes each", shard_bytes)
             : fmt::format(
                   "{} bytes each, {} of {}", shard_bytes, placement.offset, placement.stride);
}

SharedCommunicator::SharedCommunicator(std::shared_ptr<Segment> segment,
                                       int rank,
                                       std::vector<int> world_ranks)
    : segment_(std::move(segment)),
      queue_(std::make_shared<CallQueue>(segment_, rank, std::move(world_ranks))),
      next_offset_(segment_->buffers_begin()) {
}

void SharedCommunicator::take_window() {
  agree({"take_window", "", ""}, failure_of([this] { queue_->prepare_window(); }));
}

std::shared_ptr<SharedBuffer> SharedCommunicator::own(const BufferPtr& buffer) const noexcept {
  auto shared = std::dynamic_pointer_cast<SharedBuffer>(buffer);
  return shared != nullptr && shared->segment() == segment_.get() ? shared : nullptr;
}

BufferPtr SharedCommunicator::allocate(std::int64_t bytes) {
  const SharedBuffer::Shape shape{.bytes = as_unsigned(bytes), .parts = queue_->size()};
  return allocate({.operation = "allocate", .sizes = fmt::format("{} bytes", bytes)}, shape);
}

BufferPtr SharedCommunicator::allocate_shared(std::int64_t bytes) {
  const SharedBuffer::Shape shape{.bytes = as_unsigned(bytes), .for_all = true};
  return allocate({.operation = "allocate_shared", .sizes = fmt::format("{} bytes", bytes)}, shape);
}

BufferPtr SharedCommunicator::allocate(const Call& call, SharedBuffer::Shape shape) {
  shape.number = next_number_++;
  shape.offset = std::exchange(next_offset_, next_offset_ + SharedBuffer::region_bytes(shape));
  const int rank = queue_->rank();
  const std::uint64_t bytes = SharedBuffer::region_bytes(shape);
  agree(call, failure_of([&] {
          if (rank == 0) {
            segment_->grow(shape.offset + bytes, bytes);
          }
        }));
  // Each rank takes the memory of its own part, so that it lies near the rank's processor.
  agree(call, failure_of([&] {
          const bool first = rank == 0;
          if (first) {
            segment_->commit(shape.offset, kAlignment);
          }
          if (first || !shape.for_all) {
            segment_->commit(SharedBuffer::part_offset(shape, rank), shape.bytes);
          }
        }));
  return std::make_shared<SharedBuffer>(segment_, shape, shape.for_all ? 0 : rank);
}

void SharedCommunicator::agree(const Call& call, const std::string& failure) {
  std::array<std::byte, kInlineBytes> mine{};
  std::memcpy(mine.data(), failure.data(), std::min(failure.size(), mine.size() - 1));
  std::vector<std::byte> all(mine.size() * static_cast<std::size_t>(queue_->size()));
  queue_
      ->start(call,
              std::make_shared<InlineGather>(
                  *queue_, mine.size(), all.data(), Placement{.stride = mine.size()}),
              {.payload = mine})
      .wait();
  for (std::size_t r = 0; r < static_cast<std::size_t>(queue_->size()); ++r) {
    const std::string told(reinterpret_cast<const char*>(all.data() + r * mine.size()));
    if (!told.empty()) {
      throw Error(ErrorKind::kMemory, told);
    }
  }
}

InFlight SharedCommunicator::reduce_scatter(const std::string& label,
                                            BufferPtr input,
                                            std::vector<Span> ranges,
                                            std::span<float> output,
                                            bool accumulate,
                                            NumberType type) {
  std::shared_ptr<SharedBuffer> shared = own(input);
  ZEROTH_CHECK(shared != nullptr && !shared->is_for_all(), "the input comes from allocate()");
  check_ranges(ranges, *shared, output, type, rank(), size());
  const Call call{"reduce_scatter", label, describe_ranges(ranges, type)};
  return queue_->start(
      call,
      std::make_shared<ReduceScatter>(
          std::move(shared), std::move(ranges), output, accumulate, type, queue_->rank()));
}

InFlight SharedCommunicator::all_gather(const std::string& label,
                                        std::span<const std::byte> shard,
                                        BufferPtr full,
                                        Placement placement) {
  placement = checked_placement(placement, shard.size(), *full, size());
  const std::string sizes = describe_gather(shard.size(), placement);
  std::shared_ptr<SharedBuffer> shared = own(full);
  if (shared != nullptr && shared->is_for_all()) {
    const Call call{
        "all_gather", label, fmt::format("{}, into shared buffer {}", sizes, shared->number())};
    return queue_->start(
        call, std::make_shared<GatherForAll>(shard, std::move(shared), placement, queue_->rank()));
  }
  const Call call{"all_gather", label, sizes};
  if (shard.size() <= kInlineBytes) {
    return queue_->start(
        call,
        std::make_shared<InlineGather>(*queue_, shard.size(), full->data(), placement, full),
        {.payload = shard});
  }
  return queue_->start(call,
                       std::make_shared<GatherPrivate>(*queue_, shard, std::move(full), placement),
                       {.source = segment_->place_of(shard.data(), shard.size())});
}

InFlight SharedCommunicator::all_reduce(const std::string& label, std::span<float> values) {
  const Call call{"all_reduce", label, fmt::format("{} floats", values.size())};
  if (values.size_bytes() <= kInlineBytes) {
    return queue_->start(
        call, std::make_shared<InlineReduce>(*queue_, values), {.payload = std::as_bytes(values)});
  }
  return queue_->start(call, std::make_shared<AllReduce>(*queue_, values));
}

InFlight SharedCommunicator::broadcast(const std::string& label,
                                       std::span<std::byte> bytes,
                                       std::int64_t root) {
  ZEROTH_CHECK(root >= 0 && root < size(), "root {} of {} ranks", root, size());
  const Call call{"broadcast", label, fmt::format("{} bytes from rank {}", bytes.size(), root)};
  const int from = static_cast<int>(root);
  if (bytes.size() <= kInlineBytes) {
    return queue_->start(
        call, std::make_shared<InlineBroadcast>(*queue_, bytes, from), {.payload = bytes});
  }
  return queue_->start(call, std::make_shared<Broadcast>(*queue_, bytes, from));
}

InFlight SharedCommunicator::send(const std::string& label,
                                  std::span<const std::byte> bytes,
                                  std::int64_t to) {
  ZEROTH_CHECK(to >= 0 && to < size() && to != rank(), "rank {} sends to {}", rank(), to);
  const Call call{"send", label, fmt::format("{} bytes to rank {}", bytes.size(), to)};
  return queue_->start(call, std::make_shared<Send>(*queue_, label, bytes, static_cast<int>(to)));
}

InFlight SharedCommunicator::recv(const std::string& label,
                                  std::span<std::byte> bytes,
                                  std::int64_t from) {
  ZEROTH_CHECK(
      from >= 0 && from < size() && from != rank(), "rank {} receives from {}", rank(), from);
  const Call call{"recv", label, fmt::format("{} bytes from rank {}", bytes.size(), from)};
  return queue_->start(call,
                       std::make_shared<Receive>(*queue_, label, bytes, static_cast<int>(from)));
}

InFlight SharedCommunicator::all_to_all(const std::string& label,
                                        std::span<const std::byte> input,
                                        std::span<std::byte> output) {
  ZEROTH_CHECK_EQ(input.size(), output.size(), "all_to_all");
  ZEROTH_CHECK_EQ(input.size() % static_cast<std::size_t>(size()), std::size_t{0}, "equal parts");
  const Call call{"all_to_all", label, fmt::format("{} bytes", input.size())};
  return queue_->start(call, std::make_shared<AllToAll>(*queue_, input, output));
}

void SharedCommunicator::barrier(const std::string& label) {
  queue_->start({"barrier", label, ""}, std::make_shared<BarrierOperation>()).wait();
}

void SharedCommunicator::tell_activity(const std::string& activity) noexcept {
  queue_->note(activity);
}

void SharedCommunicator::abort(const std::string& reason) noexcept {
  queue_->abort(reason);
}

}  // namespace zeroth::comm
