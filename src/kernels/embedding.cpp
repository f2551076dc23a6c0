#include "kernels/embedding.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/wide.h"

#include <ATen/Parallel.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

namespace zeroth::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The places of a batch by token: tokens ascending, the places of each ascending.
struct Groups {
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> begins;  // of each token in `places`, and behind the last one the end
  std::vector<std::int64_t> places;
};

Groups group_by_token(const std::int64_t* ids, std::int64_t num_places) {
  Groups groups;
  groups.places.resize(static_cast<std::size_t>(num_places));
  std::iota(groups.places.begin(), groups.places.end(), 0);
  std::stable_sort(groups.places.begin(), groups.places.end(), [ids](auto a, auto b) {
    return ids[a] < ids[b];
  });
  for (std::int64_t i = 0; i < num_places; ++i) {
    const std::int64_t token = ids[groups.places[static_cast<std::size_t>(i)]];
    if (groups.tokens.empty() || token != groups.tokens.back()) {
      groups.tokens.push_back(token);
      groups.begins.push_back(i);
    }
  }
  groups.begins.push_back(num_places);
  return groups;
}

// Row g of the result is the sum of group g's rows, added one after the other.
template <typename T>
at::Tensor summed(const at::Tensor& rows_NC, const Groups& groups) {
  const std::int64_t width = rows_NC.size(1);
  const auto num_groups = static_cast<std::int64_t>(groups.tokens.size());
  at::Tensor sums = at::zeros({num_groups, width}, rows_NC.options());
  const T* const rows = rows_NC.data_ptr<T>();
  T* const out = sums.data_ptr<T>();
  at::parallel_for(0, num_groups, 16, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t group = first; group < last; ++group) {
      const auto index = static_cast<std::size_t>(group);
      for (std::int64_t i = groups.begins[index]; i < groups.begins[index + 1]; ++i) {
        const T* const row = rows + groups.places[static_cast<std::size_t>(i)] * width;
        std::transform(row, row + width, out + group * width, out + group * width, std::plus<T>());
      }
    }
  });
  return sums;
}

struct EmbeddingFunction : torch::autograd::Function<EmbeddingFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& weight_VC,
                            const at::Tensor& ids) {
    context->save_for_backward({ids.contiguous()});
    context->saved_data["vocabulary"] = weight_VC.size(0);
    return at::embedding(weight_VC, ids);
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const at::Tensor ids = context->get_saved_variables().front();
    const at::Tensor& grad = grads[0];
    const std::int64_t width = grad.size(-1);
    const Groups groups = group_by_token(ids.data_ptr<std::int64_t>(), ids.numel());
    const at::Tensor wide = grad.reshape({-1, width}).to(wide_type(grad)).contiguous();
    const at::Tensor sums = wide.scalar_type() == at::kDouble ? summed<double>(wide, groups)
                                                              : summed<float>(wide, groups);
    const std::int64_t vocabulary = context->saved_data["vocabulary"].toInt();
    at::Tensor result = at::zeros({vocabulary, width}, grad.options());
    result.index_copy_(0, at::tensor(groups.tokens), sums.to(grad.scalar_type()));
    return {result, {}};
  }
};

}  // namespace

at::Tensor embedding(const at::Tensor& weight_VC, const at::Tensor& ids) {
  return EmbeddingFunction::apply(weight_VC, ids);
}

}  // namespace zeroth::kernels
