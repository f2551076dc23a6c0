#include "kernels/attention.h"

#include <limits>

#include "kernels/product.h"
#include "kernels/wide.h"

#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/full.h>
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

struct AttentionFunction : torch::autograd::Function<AttentionFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& q_BHTD,
                            const at::Tensor& k_BKSD,
                            const at::Tensor& v_BKSD,
                            const at::Tensor& mask,
                            double scale,
                            double soft_cap) {
    const std::int64_t key_heads = k_BKSD.size(1);
    const at::Tensor q = by_key_head(q_BHTD, key_heads);
    const at::Tensor k = by_key_head(k_BKSD, key_heads);
    const at::Tensor v = by_key_head(v_BKSD, key_heads);
    at::Tensor scores = scaled_scores(q, k, soft_cap > 0 ? scale / soft_cap : scale);
    if (soft_cap > 0) {
      scores.tanh_().mul_(soft_cap);
    }
    by_head(scores, q_BHTD).add_(mask);
    const at::Tensor weights = at::_softmax(scores, -1, false).to(q.scalar_type());
    context->save_for_backward({q, k, v, weights});
    context->saved_data["scale"] = scale;
    context->saved_data["soft_cap"] = soft_cap;
    return product(weights, v).view(q_BHTD.sizes());
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
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

}  // namespace

at::Tensor attention(const at::Tensor& q_BHTD,
                     const at::Tensor& k_BKSD,
                     const at::Tensor& v_BKSD,
                     const at::Tensor& mask,
                     double scale,
                     double soft_cap) {
  return AttentionFunction::apply(q_BHTD, k_BKSD, v_BKSD, mask, scale, soft_cap);
}

at::Tensor causal_mask(std::int64_t num_queries, std::int64_t num_keys, std::int64_t window) {
  constexpr float kHidden = -std::numeric_limits<float>::infinity();
  const std::int64_t earlier = num_keys - num_queries;
  at::Tensor mask = at::full({num_queries, num_keys}, kHidden, at::kFloat).triu_(earlier + 1);
  if (window > 0 && window < num_keys) {
    mask += at::full({num_queries, num_keys}, kHidden, at::kFloat).tril_(earlier - window);
  }
  return mask;
}

}  // namespace zeroth::kernels
