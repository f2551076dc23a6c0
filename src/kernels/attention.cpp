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

struct AttentionFunction : torch::autograd::Function<AttentionFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& q_BHTD,
                            const at::Tensor& k_BKSD,
                            const at::Tensor& v_BKSD,
                            const at::Tensor& mask,
                            double scale) {
    const std::int64_t key_heads = k_BKSD.size(1);
    const at::Tensor q = by_key_head(q_BHTD, key_heads);
    const at::Tensor k = by_key_head(k_BKSD, key_heads);
    const at::Tensor v = by_key_head(v_BKSD, key_heads);
    at::Tensor scores = product(q, k.transpose(1, 2), wide_type(q)).mul_(scale);
    by_head(scores, q_BHTD).add_(mask);
    const at::Tensor weights = at::_softmax(scores, -1, false).to(q.scalar_type());
    context->save_for_backward({q, k, v, weights});
    context->saved_data["scale"] = scale;
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
    const at::Tensor grad_scores =
        at::_softmax_backward_data(grad_weights, weights.to(wide_type(q)), -1, wide_type(q))
            .mul_(context->saved_data["scale"].toDouble())
            .to(q.scalar_type());
    const std::vector<std::int64_t> query_shape = grads[0].sizes().vec();
    const std::vector<std::int64_t> key_shape{
        query_shape[0], k.size(0) / query_shape[0], k.size(1), k.size(2)};
    return {product(grad_scores, k).view(query_shape),
            product(grad_scores.transpose(1, 2), q).view(key_shape),
            product(weights.transpose(1, 2), grad).view(key_shape),
            {},
            {}};
  }
};

}  // namespace

at::Tensor attention(const at::Tensor& q_BHTD,
                     const at::Tensor& k_BKSD,
                     const at::Tensor& v_BKSD,
                     const at::Tensor& mask,
                     double scale) {
  return AttentionFunction::apply(q_BHTD, k_BKSD, v_BKSD, mask, scale);
}

at::Tensor causal_mask(std::int64_t num_queries, std::int64_t num_keys) {
  constexpr float kHidden = -std::numeric_limits<float>::infinity();
  return at::full({num_queries, num_keys}, kHidden, at::kFloat).triu_(num_keys - num_queries + 1);
}

}  // namespace zeroth::kernels
