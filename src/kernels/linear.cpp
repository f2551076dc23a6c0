#include "kernels/linear.h"

#include "kernels/kept_weight.h"
#include "kernels/product.h"
#include "kernels/rows.h"

#include <torch/csrc/autograd/custom_function.h>

namespace zeroth::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& x,
                            const at::Tensor& weight,
                            const PackedPtr& packed) {
    // Each gradient needs the other operand only.
    context->save_for_backward(
        {weight.requires_grad() ? x : at::Tensor(), x.requires_grad() ? weight : at::Tensor()});
    keep_packed(*context, packed);
    return with_last_dim(product(as_rows(x), {weight, packed}, Side::kForward), x);
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& grad = grads[0];
    variable_list result(3);
    if (context->needs_input_grad(0)) {
      result[0] = with_last_dim(
          product(as_rows(grad), {saved[1], kept_packed(*context)}, Side::kInputGradient), grad);
    }
    if (context->needs_input_grad(1)) {
      result[1] = product(as_rows(grad).t(), as_rows(saved[0]));
    }
    return result;
  }
};

}  // namespace

at::Tensor linear(const at::Tensor& x, const Weight& weight, const at::Tensor& bias) {
  const at::Tensor y = LinearFunction::apply(x, weight.plain, weight.packed);
  return bias.defined() ? y + bias : y;
}

}  // namespace zeroth::kernels
