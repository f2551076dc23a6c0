#include "zero/array.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "offload/pages.h"

namespace zeroth::zero {
namespace {

using offload::aligned_up;
using offload::kAlignment;

constexpr std::int64_t kCopyBytes = std::int64_t{4} << 20;  // of one trip of a copy

std::size_t as_size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

// A stretch of bytes of a file and the pages it lies in.
struct Trip {
  std::int64_t begin;
  std::int64_t end;

  [[nodiscard]] std::int64_t first_page() const noexcept { return begin / kAlignment * kAlignment; }

  [[nodiscard]] std::int64_t page_bytes() const noexcept { return aligned_up(end) - first_page(); }
};

// visit(trip) for each, in order.
template <typename Visit>
void for_each_trip(std::int64_t begin, std::int64_t end, const Visit& visit) {
  while (begin < end) {
    const std::int64_t next = std::min(end, (begin / kCopyBytes + 1) * kCopyBytes);
    visit(Trip{begin, next});
    begin = next;
  }
}

offload::Pages room_for_trips(std::int64_t bytes) {
  return offload::Pages(std::min(aligned_up(bytes) + kAlignment, kCopyBytes));
}

}  // namespace

Array::Array(std::int64_t count,
             std::int64_t width,
             memory::Purpose purpose,
             const std::shared_ptr<memory::Tally>& tally)
    : count_(count), width_(width), memory_(count * width, purpose, tally) {
}

Array::Array(std::int64_t count, std::int64_t width, std::shared_ptr<offload::SwapSpace> space)
    : count_(count), width_(width), space_(std::move(space)), offset_(space_->take(count * width)) {
}

InFlight Array::start_reading(std::int64_t begin, std::int64_t count, std::byte* memory) const {
  return space_->read(offset_ + begin * width_, memory, aligned_up(count * width_));
}

InFlight Array::start_writing(std::int64_t begin,
                              std::int64_t count,
                              const std::byte* memory) const {
  return space_->write(offset_ + begin * width_, memory, aligned_up(count * width_));
}

void Array::copy_out(std::int64_t begin, std::span<std::byte> values) const {
  const std::int64_t first = begin * width_;
  if (!on_file()) {
    std::memcpy(values.data(), data() + first, values.size());
    return;
  }
  const auto size = static_cast<std::int64_t>(values.size());
  const offload::Pages room = room_for_trips(size);
  for_each_trip(first, first + size, [&](const Trip& trip) {
    space_->read(offset_ + trip.first_page(), room.data(), trip.page_bytes()).wait();
    std::memcpy(values.data() + (trip.begin - first),
                room.data() + (trip.begin - trip.first_page()),
                as_size(trip.end - trip.begin));
  });
}

void Array::copy_in(std::int64_t begin, std::span<const std::byte> values) const {
  const std::int64_t first = begin * width_;
  if (!on_file()) {
    std::memcpy(data() + first, values.data(), values.size());
    return;
  }
  const auto size = static_cast<std::int64_t>(values.size());
  const offload::Pages room = room_for_trips(size);
  for_each_trip(first, first + size, [&](const Trip& trip) {
    const bool whole_pages =
        trip.begin % kAlignment == 0 && (trip.end % kAlignment == 0 || trip.end == bytes());
    if (!whole_pages) {
      space_->read(offset_ + trip.first_page(), room.data(), trip.page_bytes()).wait();
    }
    std::memcpy(room.data() + (trip.begin - trip.first_page()),
                values.data() + (trip.begin - first),
                as_size(trip.end - trip.begin));
    space_->write(offset_ + trip.first_page(), room.data(), trip.page_bytes()).wait();
  });
}

}  // namespace zeroth::zero
