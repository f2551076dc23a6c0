#include "kernels/rope.h"

#include "kernels/wide.h"

#include <ATen/ops/cat.h>
#include <torch/csrc/autograd/custom_function.h>

namespace zeroth::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The same rotation turns gradients back when `sin` is negated.
at::Tensor rotate(const at::Tensor& x_BTHD, const at::Tensor& cos, const at::Tensor& sin) {
  const at::ScalarType wide = wide_type(x_BTHD);
  const std::int64_t half = x_BTHD.size(-1) / 2;
  const at::Tensor first = x_BTHD.narrow(-1, 0, half).to(wide);
  const at::Tensor second = x_BTHD.narrow(-1, half, half).to(wide);
  const at::Tensor cos_heads = cos.to(wide).unsqueeze(2);
  const at::Tensor sin_heads = sin.to(wide).unsqueeze(2);
  return at::cat({first * cos_heads - second * sin_heads, second * cos_heads + first * sin_heads},
                 -1)
      .to(x_BTHD.scalar_type());
}

struct RopeFunction : torch::autograd::Function<RopeFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& x_BTHD,
                            const at::Tensor& cos,
                            const at::Tensor& sin) {
    context->save_for_backward({cos, sin});
    return rotate(x_BTHD, cos, sin);
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const variable_list saved = context->get_saved_variables();
    return {rotate(grads[0], saved[0], -saved[1]), {}, {}};
  }
};

}  // namespace

at::Tensor rope(const at::Tensor& x_BTHD, const at::Tensor& cos, const at::Tensor& sin) {
  return RopeFunction::apply(x_BTHD, cos, sin);
}

}  // namespace zeroth::kernels
