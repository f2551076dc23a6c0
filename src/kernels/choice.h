#pragma once

#include <ATen/core/Tensor.h>

namespace zeroth::kernels {

// Which version of an operation computes: its fast one where type, shape and processor have one, or
// everywhere the reference that is written in ATen's operations (`--kernels reference`).
enum class Choice { kAuto, kReference };

// Of the process: kAuto until it is set. Set before the first operation; both versions give the same
// numbers to rounding, not to the bit.
void set_choice(Choice choice) noexcept;
[[nodiscard]] Choice choice() noexcept;

// Whether the fast version may take this tensor: on a CPU, of fp32, bf16 or fp16. fp64 is for
// reference runs.
[[nodiscard]] bool is_fast(const at::Tensor& x);

// For tests: the choice while it lives.
class ChoiceScope {
 public:
  explicit ChoiceScope(Choice of_scope) : before_(choice()) { set_choice(of_scope); }

  ChoiceScope(const ChoiceScope&) = delete;
  ChoiceScope& operator=(const ChoiceScope&) = delete;

  ~ChoiceScope() { set_choice(before_); }

 private:
  Choice before_;
};

}  // namespace zeroth::kernels
