#include "kernels/lora_linear.h"

#include "kernels/choice.h"
#include "kernels/kept_weight.h"
#include "kernels/linear.h"
#include "kernels/product.h"
#include "kernels/rows.h"

#include <torch/csrc/autograd/custom_function.h>

namespace zeroth::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct LoraLinearFunction : torch::autograd::Function<LoraLinearFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& x,
                            const at::Tensor& weight,
                            const PackedPtr& packed,
                            const c10::optional<at::Tensor>& z,
                            const at::Tensor& a,
                            const at::Tensor& b,
                            double scale) {
    const at::Tensor low_input = as_rows(z ? *z : x);
    const at::Tensor low = product(low_input, a.t()).mul_(scale);
    const at::Tensor y = product(as_rows(x), {weight, packed}, Side::kForward);
    product_into(y, low, b.t(), Accumulate::kAdd);
    context->save_for_backward(
        {weight, a, b, low, low_input, weight.requires_grad() ? x : at::Tensor()});
    keep_packed(*context, packed);
    context->saved_data["scale"] = scale;
    context->saved_data["has_z"] = z.has_value();
    return with_last_dim(y, x);
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& weight = saved[0];
    const at::Tensor& a = saved[1];
    const at::Tensor& b = saved[2];
    const at::Tensor& low = saved[3];
    const at::Tensor& low_input = saved[4];
    const at::Tensor grad = as_rows(grads[0]);
    const at::Tensor grad_low = product(grad, b).mul_(context->saved_data["scale"].toDouble());
    // Gradients are asked for by the number among the tensors that there are.
    const bool has_z = context->saved_data["has_z"].toBool();
    const std::size_t of_a = has_z ? 3 : 2;
    variable_list result(7);
    if (context->needs_input_grad(0)) {
      const at::Tensor grad_x =
          product(grad, {weight, kept_packed(*context)}, Side::kInputGradient);
      if (!has_z) {
        product_into(grad_x, grad_low, a, Accumulate::kAdd);
      }
      result[0] = with_last_dim(grad_x, grads[0]);
    }
    if (context->needs_input_grad(1)) {
      result[1] = product(grad.t(), as_rows(saved[5]));
    }
    if (has_z && context->needs_input_grad(2)) {
      result[3] = with_last_dim(product(grad_low, a), grads[0]);
    }
    if (context->needs_input_grad(of_a)) {
      result[4] = product(grad_low.t(), low_input);
    }
    if (context->needs_input_grad(of_a + 1)) {
      result[5] = product(grad.t(), low);
    }
    return result;
  }
};

}  // namespace

at::Tensor lora_linear(const at::Tensor& x,
                       const Weight& weight,
                       const at::Tensor& z,
                       const at::Tensor& a,
                       const at::Tensor& b,
                       double scale) {
  if (is_fast(x)) {
    const auto own_input = z.defined() ? c10::optional<at::Tensor>(z) : c10::nullopt;
    return LoraLinearFunction::apply(x, weight.plain, weight.packed, own_input, a, b, scale);
  }
  const at::Tensor low = linear(z.defined() ? z : x, a);
  return linear(x, weight).add(linear(low, b), scale);
}

}  // namespace zeroth::kernels
