#include "kernels/gated.h"

#include "kernels/choice.h"
#include "kernels/rows.h"
#include "kernels/simd/gated.h"

#include <ATen/ops/empty.h>
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

simd::Gate gate_of(std::int64_t activation) {
  switch (static_cast<GateActivation>(activation)) {
    case GateActivation::kGelu:
      return simd::Gate::kGelu;
    case GateActivation::kGeluTanh:
      return simd::Gate::kGeluTanh;
    case GateActivation::kSilu:
      break;
  }
  return simd::Gate::kSilu;
}

simd::Gated work_of(const at::Tensor& gate, const at::Tensor& up, std::int64_t activation) {
  return {storage_of(gate), gate_of(activation), gate.data_ptr(), up.data_ptr()};
}

// Keeps gate and up alone; both gradients in one walk.
struct FastGatedFunction : torch::autograd::Function<FastGatedFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& gate_or_view,
                            const at::Tensor& up_or_view,
                            std::int64_t activation) {
    const at::Tensor gate = gate_or_view.contiguous();
    const at::Tensor up = up_or_view.contiguous();
    const at::Tensor out = at::empty(gate.sizes(), gate.options());
    const simd::Gated work = work_of(gate, up, activation);
    for_rows(gate.numel(), 1, [&, data = out.data_ptr()](std::size_t first, std::size_t last) {
      simd::gated(work, data, first, last);
    });
    context->save_for_backward({gate, up});
    context->saved_data["activation"] = activation;
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor grad = grads[0].contiguous();
    const at::Tensor grad_gate = at::empty(grad.sizes(), grad.options());
    const at::Tensor grad_up = at::empty(grad.sizes(), grad.options());
    const simd::Gated work = work_of(saved[0], saved[1], context->saved_data["activation"].toInt());
    for_rows(
        grad.numel(),
        1,
        [&, from = grad.data_ptr(), to_gate = grad_gate.data_ptr(), to_up = grad_up.data_ptr()](
            std::size_t first, std::size_t last) {
          simd::gated_backward(work, from, to_gate, to_up, first, last);
        });
    return {grad_gate, grad_up, {}};
  }
};

bool takes_fast(const at::Tensor& gate, const at::Tensor& up) {
  return is_fast(gate) && up.scalar_type() == gate.scalar_type() && up.sizes() == gate.sizes();
}

}  // namespace

at::Tensor gated(const at::Tensor& gate, const at::Tensor& up, GateActivation activation) {
  const auto number = static_cast<std::int64_t>(activation);
  if (takes_fast(gate, up)) {
    return FastGatedFunction::apply(gate, up, number);
  }
  if (gate.scalar_type() == at::kHalf) {
    return HalfGatedFunction::apply(gate, up, number);
  }
  return activated(gate, activation) * up;
}

}  // namespace zeroth::kernels
