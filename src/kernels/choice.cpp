#include "kernels/choice.h"

#include <atomic>

namespace zeroth::kernels {
namespace {

std::atomic<Choice> of_process{Choice::kAuto};

}  // namespace

void set_choice(Choice choice) noexcept {
  of_process.store(choice, std::memory_order_relaxed);
}

Choice choice() noexcept {
  return of_process.load(std::memory_order_relaxed);
}

bool is_fast(const at::Tensor& x) {
  const at::ScalarType type = x.scalar_type();
  return choice() == Choice::kAuto && x.device().is_cpu() &&
         (type == at::kFloat || type == at::kBFloat16 || type == at::kHalf);
}

}  // namespace zeroth::kernels
