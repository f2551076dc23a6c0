#include "kernels/attention.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/phases.h"
#include "kernels/attention_fast.h"
#include "kernels/choice.h"
#include "kernels/product.h"
#include "kernels/wide.h"

#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

namespace zeroth::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Queries of one group share their key head, so they are rows of one product: [B, H, T, D] -> [B*K,
// H/K*T, D].
at::Tensor by_key_head(const at::Tensor& x_BHTD, std::int64_t num_key_heads) {
  const std::int64_t batch = x_BHTD.size(0);
  return x_BHTD.contiguous().view({batch * num_key_heads, -1, x_BHTD.size(3)});
}

// Scores [B*K, H/K*T, S] and back to one matrix per head, where masks apply.
at::Tensor by_head(const at::Tensor& scores, const at::Tensor& q_BHTD) {
  return scores.view({q_BHTD.size(0), q_BHTD.size(1), q_BHTD.size(2), scores.size(2)});
}

at::Tensor scaled_scores(const at::Tensor& q, const at::Tensor& k, double scale) {
  return product(q, k.transpose(1, 2), wide_type(q)).mul_(scale);
}

// Turns the gradient of capped scores into that of the scores: times 1 - tanh^2. The scores are
// computed once more, which costs a product and keeps nothing of their size from the forward on.
at::Tensor through_soft_cap(
    at::Tensor grad, const at::Tensor& q, const at::Tensor& k, double scale, double soft_cap) {
  const at::Tensor tanh = scaled_scores(q, k, scale / soft_cap).tanh_();
  return grad.addcmul_(grad * tanh, tanh, -1);
}

// Additive: 0 where a query sees a key, minus infinity elsewhere: [T, S] or [B, 1, T, S].
at::Tensor mask_of(const at::Tensor& first_keys, std::int64_t num_keys, at::ScalarType type) {
  const at::Tensor keys = at::arange(num_keys, at::kInt);
  const at::Tensor first = first_keys.unsqueeze(-1);
  const std::int64_t num_queries = first_keys.size(-1);
  const at::Tensor own = keys.narrow(0, num_keys - num_queries, num_queries).unsqueeze(-1);
  const at::Tensor hidden = keys.lt(first).logical_or_(keys.gt(own));
  const at::Tensor mask = at::zeros(hidden.sizes(), type)
                              .masked_fill_(hidden, -std::numeric_limits<double>::infinity());
  return first_keys.dim() == 2 ? mask.unsqueeze(1) : mask;
}

// In ATen's operations, with all scores at once.
struct ReferenceFunction : torch::autograd::Function<ReferenceFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& q_BHTD,
                            const at::Tensor& k_BKSD,
                            const at::Tensor& v_BKSD,
                            const at::Tensor& first_keys,
                            double scale,
                            double soft_cap) {
    const PhaseScope phase(Phase::kAttention);
    const std::int64_t key_heads = k_BKSD.size(1);
    const at::Tensor q = by_key_head(q_BHTD, key_heads);
    const at::Tensor k = by_key_head(k_BKSD, key_heads);
    const at::Tensor v = by_key_head(v_BKSD, key_heads);
    at::Tensor scores = scaled_scores(q, k, soft_cap > 0 ? scale / soft_cap : scale);
    if (soft_cap > 0) {
      scores.tanh_().mul_(soft_cap);
    }
    by_head(scores, q_BHTD).add_(mask_of(first_keys, k.size(1), scores.scalar_type()));
    const at::Tensor weights = at::_softmax(scores, -1, false).to(q.scalar_type());
    context->save_for_backward({q, k, v, weights});
    context->saved_data["scale"] = scale;
    context->saved_data["soft_cap"] = soft_cap;
    return product(weights, v).view(q_BHTD.sizes());
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const PhaseScope phase(Phase::kAttention);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& q = saved[0];
    const at::Tensor& k = saved[1];
    const at::Tensor& v = saved[2];
    const at::Tensor& weights = saved[3];
    const at::Tensor grad = grads[0].contiguous().view(q.sizes());
    const at::Tensor grad_weights = product(grad, v.transpose(1, 2), wide_type(q));
    const double scale = context->saved_data["scale"].toDouble();
    const double soft_cap = context->saved_data["soft_cap"].toDouble();
    at::Tensor wide_scores =
        at::_softmax_backward_data(grad_weights, weights.to(wide_type(q)), -1, wide_type(q));
    if (soft_cap > 0) {
      wide_scores = through_soft_cap(std::move(wide_scores), q, k, scale, soft_cap);
    }
    const at::Tensor grad_scores = wide_scores.mul_(scale).to(q.scalar_type());
    const std::vector<std::int64_t> query_shape = grads[0].sizes().vec();
    const std::vector<std::int64_t> key_shape{
        query_shape[0], k.size(0) / query_shape[0], k.size(1), k.size(2)};
    return {product(grad_scores, k).view(query_shape),
            product(grad_scores.transpose(1, 2), q).view(key_shape),
            product(weights.transpose(1, 2), grad).view(key_shape),
            {},
            {},
            {}};
  }
};

// By blocks of queries; in fp32 where the processor has no products of the type.
struct FastFunction : torch::autograd::Function<FastFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& q_BHTD,
                            const at::Tensor& k_BKSD,
                            const at::Tensor& v_BKSD,
                            const at::Tensor& first_keys,
                            double scale,
                            double soft_cap) {
    const PhaseScope phase(Phase::kAttention);
    const at::ScalarType type = product_type(q_BHTD);
    const AttentionResult result = attention_by_blocks({.q = operand(q_BHTD, type),
                                                        .k = operand(k_BKSD, type),
                                                        .v = operand(v_BKSD, type),
                                                        .first_keys = first_keys,
                                                        .scale = scale,
                                                        .soft_cap = soft_cap});
    at::Tensor out = result.out.to(q_BHTD.scalar_type());
    context->save_for_backward({q_BHTD, k_BKSD, v_BKSD, first_keys, out, result.log_sums});
    context->saved_data["scale"] = scale;
    context->saved_data["soft_cap"] = soft_cap;
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const PhaseScope phase(Phase::kAttention);
    const variable_list saved = context->get_saved_variables();
    const at::ScalarType type = product_type(saved[0]);
    const AttentionGradients wide =
        attention_gradients({.q = operand(saved[0], type),
                             .k = operand(saved[1], type),
                             .v = operand(saved[2], type),
                             .first_keys = saved[3],
                             .scale = context->saved_data["scale"].toDouble(),
                             .soft_cap = context->saved_data["soft_cap"].toDouble()},
                            {.out = operand(saved[4], type), .log_sums = saved[5]},
                            operand(grads[0], type));
    const at::ScalarType own = saved[0].scalar_type();
    return {wide.q.to(own), wide.k.to(own), wide.v.to(own), {}, {}, {}};
  }

 private:
  static at::ScalarType product_type(const at::Tensor& x) {
    return has_product(x.scalar_type()) ? x.scalar_type() : at::kFloat;
  }

  static at::Tensor operand(const at::Tensor& x, at::ScalarType type) {
    const at::Tensor typed = x.to(type);
    return typed.stride(3) == 1 && typed.stride(2) >= typed.size(3) ? typed : typed.contiguous();
  }
};

void check_first_keys(const at::Tensor& first_keys, const at::Tensor& q, std::int64_t num_keys) {
  const std::int64_t num_queries = q.size(2);
  ZEROTH_CHECK(first_keys.scalar_type() == at::kInt && first_keys.is_contiguous(),
               "the first keys are int32 without gaps");
  ZEROTH_CHECK(first_keys.dim() == 1 || (first_keys.dim() == 2 && first_keys.size(0) == q.size(0)),
               "first keys of {} dims for {} rows",
               first_keys.dim(),
               q.size(0));
  ZEROTH_CHECK_EQ(first_keys.size(-1), num_queries, "the number of first keys");
  const auto* values = first_keys.data_ptr<std::int32_t>();
  for (std::int64_t i = 0; i < first_keys.numel(); ++i) {
    const std::int64_t own = num_keys - num_queries + i % num_queries;
    ZEROTH_CHECK(values[i] >= 0 && values[i] <= own,
                 "a query at position {} whose first key is {}",
                 own,
                 values[i]);
  }
}

}  // namespace

at::Tensor attention(const at::Tensor& q_BHTD,
                     const at::Tensor& k_BKSD,
                     const at::Tensor& v_BKSD,
                     const at::Tensor& first_keys,
                     double scale,
                     double soft_cap) {
  check_first_keys(first_keys, q_BHTD, k_BKSD.size(2));
  return is_fast(q_BHTD)
             ? FastFunction::apply(q_BHTD, k_BKSD, v_BKSD, first_keys, scale, soft_cap)
             : ReferenceFunction::apply(q_BHTD, k_BKSD, v_BKSD, first_keys, scale, soft_cap);
}

at::Tensor causal_first_keys(std::int64_t num_queries, std::int64_t num_keys, std::int64_t window) {
  if (window <= 0) {
    return at::zeros({num_queries}, at::kInt);
  }
  const std::int64_t earlier = num_keys - num_queries;
  return at::arange(earlier, num_keys, at::kInt).sub_(window - 1).clamp_min_(0);
}

}  // namespace zeroth::kernels
