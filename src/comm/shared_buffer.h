#pragma once

#include <memory>

#include "comm/communicator.h"
#include "comm/segment.h"

namespace zeroth::comm {

// A buffer in the segment: one part for each rank, or one part for all. Made by all ranks at the
// same place; its memory returns when the last of them drops it.
class SharedBuffer : public Buffer {
 public:
  struct Shape {
    std::uint64_t number = 0;  // of the buffer: the same on all ranks of all hosts
    std::uint64_t offset = 0;  // of the region in the segment
    std::uint64_t bytes = 0;   // of a part
    int parts = 1;
    bool for_all = false;  // one part that every rank reads and writes
  };

  // The memory must have been committed.
  SharedBuffer(std::shared_ptr<Segment> segment, const Shape& shape, int own_part);
  SharedBuffer(const SharedBuffer&) = delete;
  SharedBuffer& operator=(const SharedBuffer&) = delete;
  ~SharedBuffer() override;

  [[nodiscard]] std::byte* data() const noexcept override { return part(own_part_); }

  [[nodiscard]] std::int64_t bytes() const noexcept override {
    return static_cast<std::int64_t>(shape_.bytes);
  }

  [[nodiscard]] std::byte* part(int index) const noexcept;

  [[nodiscard]] bool is_for_all() const noexcept { return shape_.for_all; }

  [[nodiscard]] const Segment* segment() const noexcept { return segment_.get(); }

  [[nodiscard]] std::uint64_t number() const noexcept { return shape_.number; }

  // How much of the segment a buffer of this shape takes, and where its parts lie.
  [[nodiscard]] static std::uint64_t region_bytes(const Shape& shape) noexcept;
  [[nodiscard]] static std::uint64_t part_offset(const Shape& shape, int index) noexcept;

 private:
  std::shared_ptr<Segment> segment_;
  Shape shape_;
  int own_part_;
  std::shared_ptr<Mapping> mapping_;
};

}  // namespace zeroth::comm
