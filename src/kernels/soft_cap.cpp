#include "kernels/soft_cap.h"

#include "kernels/wide.h"

#include <torch/csrc/autograd/custom_function.h>

namespace zeroth::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct SoftCapFunction : torch::autograd::Function<SoftCapFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, double cap) {
    const at::Tensor capped = (x.to(wide_type(x)) / cap).tanh_().mul_(cap).to(x.scalar_type());
    context->save_for_backward({capped});
    context->saved_data["cap"] = cap;
    return capped;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const at::Tensor capped = context->get_saved_variables().front();
    const double cap = context->saved_data["cap"].toDouble();
    // 1 - tanh^2, of the rounded result.
    const at::Tensor slope = (capped.to(wide_type(capped)) / cap).square_().neg_().add_(1);
    return {(slope.mul_(grads[0])).to(capped.scalar_type()), {}};
  }
};

}  // namespace

at::Tensor soft_cap(const at::Tensor& x, double cap) {
  return SoftCapFunction::apply(x, cap);
}

}  // namespace zeroth::kernels
