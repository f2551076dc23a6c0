#include "kernels/gated.h"

#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <torch/csrc/autograd/custom_function.h>

namespace zeroth::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

const char* approximation_of(GateActivation activation) {
  return activation == GateActivation::kGeluTanh ? "tanh" : "none";
}

at::Tensor activated(const at::Tensor& gate, GateActivation activation) {
  return activation == GateActivation::kSilu ? at::silu(gate)
                                             : at::gelu(gate, approximation_of(activation));
}

at::Tensor activated_backward(const at::Tensor& grad,
                              const at::Tensor& gate,
                              GateActivation activation) {
  return activation == GateActivation::kSilu
             ? at::silu_backward(grad, gate)
             : at::gelu_backward(grad, gate, approximation_of(activation));
}

// ATen's activations know no fp16 on a CPU: computed in fp32, rounded (or overflowing) at the end.
struct HalfGatedFunction : torch::autograd::Function<HalfGatedFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& gate,
                            const at::Tensor& up,
                            std::int64_t activation) {
    context->save_for_backward({gate, up});
    context->saved_data["activation"] = activation;
    return activated(gate.to(at::kFloat), static_cast<GateActivation>(activation))
        .mul_(up)
        .to(at::kHalf);
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const variable_list saved = context->get_saved_variables();
    const auto activation = static_cast<GateActivation>(context->saved_data["activation"].toInt());
    const at::Tensor gate = saved[0].to(at::kFloat);
    const at::Tensor grad = grads[0].to(at::kFloat);
    return {activated_backward(grad * saved[1], gate, activation).to(at::kHalf),
            activated(gate, activation).mul_(grad).to(at::kHalf),
            {}};
  }
};

}  // namespace

at::Tensor gated(const at::Tensor& gate, const at::Tensor& up, GateActivation activation) {
  if (gate.scalar_type() == at::kHalf) {
    return HalfGatedFunction::apply(gate, up, static_cast<std::int64_t>(activation));
  }
  return activated(gate, activation) * up;
}

}  // namespace zeroth::kernels
