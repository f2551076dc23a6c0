#include "kernels/cross_entropy.h"

#include "kernels/choice.h"
#include "kernels/loss_rows.h"
#include "kernels/soft_cap.h"
#include "kernels/wide.h"

#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <torch/csrc/autograd/custom_function.h>

namespace zeroth::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct CrossEntropyFunction : torch::autograd::Function<CrossEntropyFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& logits_NV,
                            const at::Tensor& targets_N) {
    const at::Tensor log_probabilities =
        at::_log_softmax(logits_NV.to(wide_type(logits_NV)), -1, false);
    context->save_for_backward({log_probabilities, targets_N});
    context->saved_data["dtype"] = static_cast<std::int64_t>(logits_NV.scalar_type());
    return -log_probabilities.gather(1, targets_N.unsqueeze(1)).sum();
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& targets = saved[1];
    at::Tensor grad = saved[0].exp();
    const at::Tensor minus_one = -at::ones({targets.size(0), 1}, grad.options());
    grad.scatter_add_(1, targets.unsqueeze(1), minus_one).mul_(grads[0]);
    return {grad.to(static_cast<at::ScalarType>(context->saved_data["dtype"].toInt())), {}};
  }
};

// Keeps the logits as they came and two numbers a row.
struct FastCrossEntropyFunction : torch::autograd::Function<FastCrossEntropyFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& logits_or_view,
                            const at::Tensor& targets_N,
                            double soft_cap) {
    const at::Tensor logits = logits_or_view.contiguous();
    const at::Tensor targets = targets_N.contiguous();
    const RowLosses rows = row_losses(logits, targets, soft_cap);
    context->save_for_backward({logits, targets, rows.sums});
    context->saved_data["soft_cap"] = soft_cap;
    return sum_of_losses(rows.losses);
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor grad = at::empty(saved[0].sizes(), saved[0].options());
    row_gradients(saved[0],
                  saved[1],
                  saved[2],
                  context->saved_data["soft_cap"].toDouble(),
                  grads[0].item<float>(),
                  grad);
    return {grad, {}, {}};
  }
};

}  // namespace

at::Tensor cross_entropy_sum(const at::Tensor& logits_NV,
                             const at::Tensor& targets_N,
                             double soft_cap) {
  if (is_fast(logits_NV)) {
    return FastCrossEntropyFunction::apply(logits_NV, targets_N, soft_cap);
  }
  return CrossEntropyFunction::apply(
      soft_cap > 0 ? kernels::soft_cap(logits_NV, soft_cap) : logits_NV, targets_N);
}

}  // namespace zeroth::kernels
