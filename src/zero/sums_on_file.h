#pragma once

#include <cstdint>

#include "comm/communicator.h"
#include "memory/flat_buffer.h"
#include "zero/array.h"
#include "zero/staging.h"

#include <ATen/core/Tensor.h>

namespace zeroth::zero {

// The sum of squares of stored sums of gradients, in an order that depends on their number alone.
[[nodiscard]] double sum_of_squares(const std::byte* sums,
                                    std::int64_t count,
                                    comm::NumberType type);

// One rank's sums of a unit's gradients, which rest on file between micro-steps: each reads them,
// adds its own and writes them back. A window's first reads nothing.
class SumsOnFile {
 public:
  // None at all.
  SumsOnFile() = default;
  SumsOnFile(std::int64_t count, comm::NumberType type, std::shared_ptr<offload::SwapSpace> space);

  [[nodiscard]] bool empty() const noexcept { return resting_.empty(); }

  [[nodiscard]] const Array& resting() const noexcept { return resting_; }

  // Whether any of this window is there.
  [[nodiscard]] bool has_sums() const noexcept { return has_sums_; }

  // All of them, into whole pages; has_sums() only.
  void load(std::byte* into) const;
  // All of them, from whole pages, which belong to writing() until that is done. `last`: of the
  // window, so that their squares are summed now, while they are in memory.
  void start_writing(const std::byte* sums, bool last);

  [[nodiscard]] const SharedWrite& writing() const noexcept { return written_; }

  // Adds a micro-step's fp32 sums, which come in a buffer of `staging` and go back to it.
  void add(memory::FlatBuffer sums, StagingPool& staging, bool last);

  void finish() const;

  void clear() noexcept { has_sums_ = false; }

  // Of the window, after its last micro-step.
  [[nodiscard]] double squares() const noexcept { return squares_; }

  // A copy of all; zeros before the window's first.
  [[nodiscard]] at::Tensor copy() const;
  void overwrite(const at::Tensor& all);

 private:
  [[nodiscard]] bool is_narrow() const noexcept { return type_ != comm::NumberType::kFloat32; }

  std::int64_t count_ = 0;
  comm::NumberType type_ = comm::NumberType::kFloat32;
  Array resting_;
  SharedWrite written_;  // the last writing
  bool has_sums_ = false;
  double squares_ = 0;
};

}  // namespace zeroth::zero
