#include "kernels/linear_cross_entropy.h"

#include <algorithm>

#include "arithmetic/loss_chunks.h"
#include "base/check.h"
#include "kernels/choice.h"
#include "kernels/cross_entropy.h"
#include "kernels/linear.h"
#include "kernels/loss_rows.h"
#include "kernels/product.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

namespace zeroth::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Probabilities are small beside fp16's smallest numbers: their gradients are kept larger, and
// brought back in fp32.
float scale_within(at::ScalarType dtype) {
  return dtype == at::kHalf ? 0x1p15F : 1.0F;
}

// One chunk at a time, and what is left of it: losses, and where they are wanted gradients times
// scale_within, in fp32 until backward rounds them once.
class Chunks {
 public:
  Chunks(const at::Tensor& hidden_NC,
         const Weight& weight_VC,
         const at::Tensor& targets_N,
         double soft_cap)
      : hidden_(hidden_NC),
        weight_(weight_VC),
        targets_(targets_N),
        soft_cap_(soft_cap),
        rows_(std::min(
            hidden_NC.size(0),
            arithmetic::rows_at_once(weight_VC.plain.size(0),
                                     static_cast<std::int64_t>(hidden_NC.element_size())))),
        losses_(at::empty({hidden_NC.size(0)}, at::kFloat)) {}

  void want_gradients(bool of_hidden, bool of_weight) {
    if (of_hidden) {
      grad_hidden_ = at::empty(hidden_.sizes(), at::kFloat);
    }
    if (of_weight) {
      grad_weight_ = at::empty(weight_.plain.sizes(), at::kFloat);
    }
  }

  void run() {
    const std::int64_t count = hidden_.size(0);
    if (count == 0) {
      clear_gradients();
      return;
    }
    const at::Tensor buffer = at::empty({rows_, weight_.plain.size(0)}, hidden_.options());
    for (std::int64_t begin = 0; begin < count; begin += rows_) {
      run_chunk(begin, std::min(rows_, count - begin), buffer);
    }
  }

  [[nodiscard]] at::Tensor loss() const { return sum_of_losses(losses_); }

  [[nodiscard]] const at::Tensor& grad_hidden() const { return grad_hidden_; }

  [[nodiscard]] const at::Tensor& grad_weight() const { return grad_weight_; }

 private:
  void clear_gradients() {
    if (grad_weight_.defined()) {
      grad_weight_.zero_();
    }
  }

  void run_chunk(std::int64_t begin, std::int64_t count, const at::Tensor& buffer) {
    const at::Tensor x = hidden_.narrow(0, begin, count);
    const at::Tensor targets = targets_.narrow(0, begin, count);
    const at::Tensor logits = buffer.narrow(0, 0, count);
    product_into(logits, x, weight_, Side::kForward);
    const RowLosses rows = row_losses(logits, targets, soft_cap_);
    losses_.narrow(0, begin, count).copy_(rows.losses);
    if (!grad_hidden_.defined() && !grad_weight_.defined()) {
      return;
    }
    row_gradients(
        logits, targets, rows.sums, soft_cap_, scale_within(hidden_.scalar_type()), logits);
    if (grad_hidden_.defined()) {
      product_into(grad_hidden_.narrow(0, begin, count), logits, weight_, Side::kInputGradient);
    }
    if (grad_weight_.defined()) {
      const Accumulate mode = begin == 0 ? Accumulate::kOverwrite : Accumulate::kAdd;
      product_into(grad_weight_, logits.t(), x, mode);
    }
  }

  at::Tensor hidden_;
  Weight weight_;
  at::Tensor targets_;
  double soft_cap_;
  std::int64_t rows_;
  at::Tensor losses_, grad_hidden_, grad_weight_;
};

// A few rows at a time: as a whole, a narrower result would pass through an fp32 copy of all.
at::Tensor scaled(const at::Tensor& grad, double scale, at::ScalarType dtype) {
  const std::int64_t rows = grad.size(0);
  const std::int64_t at_once = std::max<std::int64_t>(
      1, arithmetic::kRoundedAtOnce / std::max<std::int64_t>(1, grad.size(1)));
  const at::Tensor factor = at::scalar_tensor(scale, at::kFloat);
  at::Tensor result = at::empty(grad.sizes(), grad.options().dtype(dtype));
  for (std::int64_t row = 0; row < rows; row += at_once) {
    const std::int64_t count = std::min(at_once, rows - row);
    at::Tensor part = result.narrow(0, row, count);
    at::mul_out(part, grad.narrow(0, row, count), factor);
  }
  return result;
}

struct LinearCrossEntropyFunction : torch::autograd::Function<LinearCrossEntropyFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& hidden_NC,
                            const at::Tensor& weight_VC,
                            const PackedPtr& packed,
                            const at::Tensor& targets_N,
                            double soft_cap,
                            bool grad_mode) {
    Chunks chunks(
        hidden_NC.contiguous(), {weight_VC.contiguous(), packed}, targets_N.contiguous(), soft_cap);
    if (grad_mode) {
      chunks.want_gradients(hidden_NC.requires_grad(), weight_VC.requires_grad());
    }
    chunks.run();
    context->save_for_backward({chunks.grad_hidden(), chunks.grad_weight()});
    context->saved_data["dtype"] = static_cast<std::int64_t>(hidden_NC.scalar_type());
    return chunks.loss();
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const variable_list saved = context->get_saved_variables();
    const auto dtype = static_cast<at::ScalarType>(context->saved_data["dtype"].toInt());
    const double scale = grads[0].item<double>() / static_cast<double>(scale_within(dtype));
    variable_list result(6);
    for (std::size_t i = 0; i < saved.size(); ++i) {
      if (saved[i].defined() && context->needs_input_grad(i)) {
        result[i] = scaled(saved[i], scale, dtype);
      }
    }
    return result;
  }
};

}  // namespace

at::Tensor linear_cross_entropy(const at::Tensor& hidden_NC,
                                const Weight& weight_VC,
                                const at::Tensor& targets_N,
                                double soft_cap) {
  ZEROTH_CHECK_EQ(targets_N.size(0), hidden_NC.size(0), "one target for each row");
  if (is_fast(hidden_NC) && weight_VC.plain.scalar_type() == hidden_NC.scalar_type()) {
    return LinearCrossEntropyFunction::apply(hidden_NC,
                                             weight_VC.plain,
                                             weight_VC.packed,
                                             targets_N,
                                             soft_cap,
                                             c10::GradMode::is_enabled());
  }
  return cross_entropy_sum(kernels::linear(hidden_NC, weight_VC), targets_N, soft_cap);
}

}  // namespace zeroth::kernels
