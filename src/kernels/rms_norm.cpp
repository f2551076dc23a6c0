#include "kernels/rms_norm.h"

#include "kernels/wide.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/rsqrt.h>
#include <torch/csrc/autograd/custom_function.h>

namespace zeroth::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor factor_of(const at::Tensor& weight, bool plus_one) {
  const at::Tensor wide = weight.to(wide_type(weight));
  return plus_one ? wide + 1 : wide;
}

struct RmsNormFunction : torch::autograd::Function<RmsNormFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& x,
                            const at::Tensor& weight,
                            double epsilon,
                            bool plus_one) {
    const at::Tensor wide = x.to(wide_type(x));
    const at::Tensor inverse = at::rsqrt(wide.square().mean(-1, /*keepdim=*/true) + epsilon);
    context->save_for_backward({x, weight, inverse});
    context->saved_data["plus_one"] = plus_one;
    if (plus_one) {
      return (wide * inverse).mul_(factor_of(weight, true)).to(x.scalar_type());
    }
    return (wide * inverse).to(x.scalar_type()) * weight;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& weight = saved[1];
    const at::Tensor& inverse = saved[2];
    const at::Tensor grad = grads[0].to(wide_type(x));
    const at::Tensor normed = x.to(wide_type(x)) * inverse;
    variable_list result(4);
    if (context->needs_input_grad(0)) {
      const at::Tensor scaled = grad * factor_of(weight, context->saved_data["plus_one"].toBool());
      const at::Tensor along = (scaled * normed).mean(-1, /*keepdim=*/true);
      result[0] = ((scaled - normed * along) * inverse).to(x.scalar_type());
    }
    if (context->needs_input_grad(1)) {
      result[1] = (grad * normed).reshape({-1, x.size(-1)}).sum(0).to(weight.scalar_type());
    }
    return result;
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x,
                    const at::Tensor& weight,
                    double epsilon,
                    NormWeight form) {
  return RmsNormFunction::apply(x, weight, epsilon, form == NormWeight::kPlusOne);
}

}  // namespace zeroth::kernels
