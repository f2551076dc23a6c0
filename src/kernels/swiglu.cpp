#include "kernels/swiglu.h"

#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <torch/csrc/autograd/custom_function.h>

namespace zeroth::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// ATen's silu knows no fp16 on a CPU: computed in fp32, rounded (or overflowing) at the end.
struct HalfSwigluFunction : torch::autograd::Function<HalfSwigluFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& gate,
                            const at::Tensor& up) {
    context->save_for_backward({gate, up});
    return at::silu(gate.to(at::kFloat)).mul_(up).to(at::kHalf);
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor gate = saved[0].to(at::kFloat);
    const at::Tensor grad = grads[0].to(at::kFloat);
    return {at::silu_backward(grad * saved[1], gate).to(at::kHalf),
            at::silu(gate).mul_(grad).to(at::kHalf)};
  }
};

}  // namespace

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  if (gate.scalar_type() == at::kHalf) {
    return HalfSwigluFunction::apply(gate, up);
  }
  return at::silu(gate) * up;
}

}  // namespace zeroth::kernels
