#include "kernels/rms_norm.h"

#include <algorithm>

#include "kernels/choice.h"
#include "kernels/rows.h"
#include "kernels/simd/rms_norm.h"
#include "kernels/wide.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/zeros.h>
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

// ---- The fast version: keeps what was normed and one number a row.

bool takes_fast(const at::Tensor& x, const at::Tensor& weight) {
  return is_fast(x) && weight.scalar_type() == x.scalar_type();
}

// The weight's gradient is summed over blocks of rows, and the blocks' sums one after the other, so
// that its bits depend on the shape alone.
constexpr std::int64_t kMaxBlocks = 64;
constexpr std::int64_t kMinBlockRows = 16;

at::Tensor summed_blocks(const at::Tensor& blocks) {
  at::Tensor sum = blocks[0];
  for (std::int64_t i = 1; i < blocks.size(0); ++i) {
    sum += blocks[i];
  }
  return sum;
}

void run_forward(simd::RmsNormForward work, std::int64_t rows) {
  for_rows(rows, static_cast<std::int64_t>(work.columns), [&](std::size_t first, std::size_t last) {
    simd::rms_norm(work, first, last);
  });
}

// The gradient of the factor [H] in fp32 where it is wanted, else undefined.
at::Tensor run_backward(const simd::RmsNormBackward& work, std::int64_t rows, bool of_factor) {
  const auto columns = static_cast<std::int64_t>(work.columns);
  if (!of_factor) {
    for_rows(rows, columns, [&](std::size_t first, std::size_t last) {
      simd::rms_norm(work, first, last, nullptr);
    });
    return {};
  }
  const std::int64_t block_rows = std::max(kMinBlockRows, (rows + kMaxBlocks - 1) / kMaxBlocks);
  const std::int64_t num_blocks = std::max<std::int64_t>(1, (rows + block_rows - 1) / block_rows);
  const at::Tensor blocks = at::zeros({num_blocks, columns}, at::kFloat);
  auto* const sums = blocks.data_ptr<float>();
  for_rows(num_blocks, columns * block_rows, [&](std::size_t first, std::size_t last) {
    for (std::size_t block = first; block < last; ++block) {
      const auto begin = block * static_cast<std::size_t>(block_rows);
      const auto end =
          std::min(begin + static_cast<std::size_t>(block_rows), static_cast<std::size_t>(rows));
      simd::rms_norm(work, begin, end, sums + block * work.columns);
    }
  });
  return summed_blocks(blocks);
}

// x [.., H] with H numbers a row, normed; `added` may be undefined.
struct FastNorm {
  at::Tensor x, added, weight;
  double epsilon;
  bool plus_one;

  [[nodiscard]] SumAndNorm forward(AutogradContext* context) const {
    const std::int64_t columns = x.size(-1);
    const std::int64_t rows = columns == 0 ? 0 : x.numel() / columns;
    const at::Tensor factor = factor_of(weight, plus_one).contiguous();
    const at::Tensor inverse = at::empty({rows}, at::kFloat);
    const SumAndNorm result{added.defined() ? at::empty(x.sizes(), x.options()) : x,
                            at::empty(x.sizes(), x.options())};
    run_forward({.storage = storage_of(x),
                 .columns = static_cast<std::size_t>(columns),
                 .epsilon = static_cast<float>(epsilon),
                 .rounds_first = !plus_one,
                 .factor = factor.data_ptr<float>(),
                 .x = x.data_ptr(),
                 .added = added.defined() ? added.data_ptr() : nullptr,
                 .sum = added.defined() ? result.sum.data_ptr() : nullptr,
                 .y = result.normed.data_ptr(),
                 .inverse = inverse.data_ptr<float>()},
                rows);
    context->save_for_backward({result.sum, weight, inverse});
    context->saved_data["plus_one"] = plus_one;
    context->set_materialize_grads(false);
    return result;
  }
};

struct NormGrads {
  at::Tensor x, weight;
};

// `beside` is the gradient that reaches the normed rows by another way, or undefined.
NormGrads fast_backward(AutogradContext* context,
                        const at::Tensor& grads,
                        const at::Tensor& beside,
                        bool of_x,
                        bool of_weight) {
  const variable_list saved = context->get_saved_variables();
  const at::Tensor& x = saved[0];
  const at::Tensor& weight = saved[1];
  const at::Tensor factor =
      factor_of(weight, context->saved_data["plus_one"].toBool()).contiguous();
  const at::Tensor grad = grads.contiguous();
  const at::Tensor grad_beside = beside.defined() ? beside.contiguous() : beside;
  NormGrads result;
  result.x = of_x ? at::empty(x.sizes(), x.options()) : at::Tensor();
  const at::Tensor grad_factor =
      run_backward({.storage = storage_of(x),
                    .columns = static_cast<std::size_t>(x.size(-1)),
                    .factor = factor.data_ptr<float>(),
                    .x = x.data_ptr(),
                    .inverse = saved[2].data_ptr<float>(),
                    .grad = grad.data_ptr(),
                    .grad_beside = grad_beside.defined() ? grad_beside.data_ptr() : nullptr,
                    .grad_x = of_x ? result.x.data_ptr() : nullptr},
                   saved[2].size(0),
                   of_weight);
  result.weight = of_weight ? grad_factor.to(weight.scalar_type()) : at::Tensor();
  return result;
}

struct FastRmsNormFunction : torch::autograd::Function<FastRmsNormFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& x,
                            const at::Tensor& weight,
                            double epsilon,
                            bool plus_one) {
    return FastNorm{x.contiguous(), {}, weight, epsilon, plus_one}.forward(context).normed;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    variable_list result(4);
    if (grads[0].defined()) {
      const NormGrads both = fast_backward(
          context, grads[0], {}, context->needs_input_grad(0), context->needs_input_grad(1));
      result[0] = both.x;
      result[1] = both.weight;
    }
    return result;
  }
};

struct AddRmsNormFunction : torch::autograd::Function<AddRmsNormFunction> {
  static variable_list forward(AutogradContext* context,
                               const at::Tensor& x,
                               const at::Tensor& added,
                               const at::Tensor& weight,
                               double epsilon,
                               bool plus_one) {
    const SumAndNorm result =
        FastNorm{x.contiguous(), added.contiguous(), weight, epsilon, plus_one}.forward(context);
    return {result.sum, result.normed};
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    variable_list result(5);
    if (!grads[1].defined()) {
      result[0] = result[1] = grads[0];
      return result;
    }
    const bool of_terms = context->needs_input_grad(0) || context->needs_input_grad(1);
    const NormGrads both =
        fast_backward(context, grads[1], grads[0], of_terms, context->needs_input_grad(2));
    result[0] = result[1] = both.x;
    result[2] = both.weight;
    return result;
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x,
                    const at::Tensor& weight,
                    double epsilon,
                    NormWeight form) {
  const bool plus_one = form == NormWeight::kPlusOne;
  return takes_fast(x, weight) ? FastRmsNormFunction::apply(x, weight, epsilon, plus_one)
                               : RmsNormFunction::apply(x, weight, epsilon, plus_one);
}

SumAndNorm add_rms_norm(const at::Tensor& x,
                        const at::Tensor& added,
                        const at::Tensor& weight,
                        double epsilon,
                        NormWeight form) {
  if (takes_fast(x, weight) && added.scalar_type() == x.scalar_type() &&
      added.sizes() == x.sizes()) {
    const variable_list both =
        AddRmsNormFunction::apply(x, added, weight, epsilon, form == NormWeight::kPlusOne);
    return {both[0], both[1]};
  }
  const at::Tensor sum = x + added;
  return {sum, rms_norm(sum, weight, epsilon, form)};
}

}  // namespace zeroth::kernels
