#include "comm/shared_buffer.h"

#include <utility>

namespace zeroth::comm {
namespace {

std::uint64_t part_stride(const SharedBuffer::Shape& shape) {
  return (shape.bytes + kPage - 1) / kPage * kPage;
}

}  // namespace

SharedBuffer::SharedBuffer(std::shared_ptr<Segment> segment, const Shape& shape, int own_part)
    : segment_(std::move(segment)),
      shape_(shape),
      own_part_(own_part),
      mapping_(segment_->map(shape.offset, region_bytes(shape))) {
}

SharedBuffer::~SharedBuffer() {
  auto& header = *reinterpret_cast<RegionHeader*>(mapping_->data());
  if (header.released.fetch_add(1) + 1 == static_cast<std::uint32_t>(segment_->size())) {
    segment_->release(shape_.offset, region_bytes(shape_));
  }
}

std::byte* SharedBuffer::part(int index) const noexcept {
  return mapping_->data() + (part_offset(shape_, index) - shape_.offset);
}

std::uint64_t SharedBuffer::region_bytes(const Shape& shape) noexcept {
  return kPage + part_stride(shape) * static_cast<std::uint64_t>(shape.parts);
}

std::uint64_t SharedBuffer::part_offset(const Shape& shape, int index) noexcept {
  return shape.offset + kPage + part_stride(shape) * static_cast<std::uint64_t>(index);
}

}  // namespace zeroth::comm
