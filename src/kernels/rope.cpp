#include "kernels/rope.h"

#include <array>

#include "kernels/choice.h"
#include "kernels/rows.h"
#include "kernels/simd/rope.h"
#include "kernels/wide.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
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

// ---- The fast version

std::array<std::size_t, 3> strides_of(const at::Tensor& x_BTHD) {
  return {static_cast<std::size_t>(x_BTHD.stride(0)),
          static_cast<std::size_t>(x_BTHD.stride(1)),
          static_cast<std::size_t>(x_BTHD.stride(2))};
}

// Each head's tokens one behind the other, as attention reads them.
at::Tensor empty_by_head(const at::Tensor& x_BTHD) {
  const std::int64_t tokens = x_BTHD.size(1);
  const std::int64_t heads = x_BTHD.size(2);
  const std::int64_t head_dim = x_BTHD.size(3);
  return at::empty_strided(x_BTHD.sizes(),
                           {heads * tokens * head_dim, head_dim, tokens * head_dim, 1},
                           x_BTHD.options());
}

void turn(const at::Tensor& heads,
          const at::Tensor& cos,
          const at::Tensor& sin,
          bool backwards,
          const at::Tensor& out) {
  if (out.numel() == 0) {
    return;
  }
  const at::Tensor x_BTHD = heads.stride(3) == 1 ? heads : heads.contiguous();
  const std::int64_t tokens = x_BTHD.size(1);
  const std::int64_t half = x_BTHD.size(3) / 2;
  const simd::Rope work{
      .storage = storage_of(x_BTHD),
      .tokens = static_cast<std::size_t>(tokens),
      .heads = static_cast<std::size_t>(x_BTHD.size(2)),
      .half = static_cast<std::size_t>(half),
      .strides = strides_of(x_BTHD),
      .out_strides = strides_of(out),
      .row_of_angles = cos.size(0) == 1 ? 0 : static_cast<std::size_t>(tokens * half),
      .backwards = backwards,
      .cos = cos.data_ptr<float>(),
      .sin = sin.data_ptr<float>(),
      .x = x_BTHD.data_ptr(),
      .out = out.data_ptr()};
  for_rows(x_BTHD.size(0) * tokens,
           x_BTHD.size(2) * x_BTHD.size(3),
           [&](std::size_t first, std::size_t last) { simd::rope(work, first, last); });
}

struct FastRopeFunction : torch::autograd::Function<FastRopeFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& x_BTHD,
                            const at::Tensor& cos,
                            const at::Tensor& sin) {
    const at::Tensor wide_cos = cos.to(at::kFloat).contiguous();
    const at::Tensor wide_sin = sin.to(at::kFloat).contiguous();
    const at::Tensor out = empty_by_head(x_BTHD);
    turn(x_BTHD, wide_cos, wide_sin, /*backwards=*/false, out);
    context->save_for_backward({wide_cos, wide_sin});
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor out = at::empty(grads[0].sizes(), grads[0].options());
    turn(grads[0], saved[0], saved[1], /*backwards=*/true, out);
    return {out, {}, {}};
  }
};

// Angles that every head shares, of each row or of all.
bool takes_fast(const at::Tensor& x_BTHD, const at::Tensor& cos) {
  return is_fast(x_BTHD) && x_BTHD.size(3) % 2 == 0 && cos.dim() == 3 &&
         (cos.size(0) == 1 || cos.size(0) == x_BTHD.size(0)) && cos.size(1) == x_BTHD.size(1);
}

}  // namespace

at::Tensor rope(const at::Tensor& x_BTHD, const at::Tensor& cos, const at::Tensor& sin) {
  return takes_fast(x_BTHD, cos) ? FastRopeFunction::apply(x_BTHD, cos, sin)
                                 : RopeFunction::apply(x_BTHD, cos, sin);
}

}  // namespace zeroth::kernels
