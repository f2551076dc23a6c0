#include "kernels/swiglu.h"

#include <ATen/ops/silu.h>

namespace zeroth::kernels {

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  return at::silu(gate) * up;
}

}  // namespace zeroth::kernels
