#include "kernels/embedding.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "kernels/choice.h"
#include "kernels/parallel.h"
#include "kernels/rows.h"
#include "kernels/simd/embedding.h"
#include "kernels/wide.h"

#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
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
  for_each_range(num_groups, 16, [&](std::int64_t first, std::int64_t last) {
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

at::Tensor reference_gradient(const at::Tensor& grad_NC,
                              const at::Tensor& ids,
                              std::int64_t vocabulary) {
  const Groups groups = group_by_token(ids.data_ptr<std::int64_t>(), ids.numel());
  const at::Tensor wide = grad_NC.to(wide_type(grad_NC)).contiguous();
  const at::Tensor sums = wide.scalar_type() == at::kDouble ? summed<double>(wide, groups)
                                                            : summed<float>(wide, groups);
  at::Tensor result = at::zeros({vocabulary, grad_NC.size(1)}, grad_NC.options());
  result.index_copy_(0, at::tensor(groups.tokens), sums.to(grad_NC.scalar_type()));
  return result;
}

// The places of each token of the vocabulary, ascending: counted, then laid out.
struct PlacesOfTokens {
  std::vector<std::int64_t> begins;  // of each token in `places`, and behind the last one the end
  std::vector<std::int64_t> places;
};

PlacesOfTokens places_of_tokens(const std::int64_t* ids,
                                std::size_t count,
                                std::size_t vocabulary) {
  PlacesOfTokens result{std::vector<std::int64_t>(vocabulary + 1),
                        std::vector<std::int64_t>(count)};
  for (std::size_t i = 0; i < count; ++i) {
    ++result.begins[static_cast<std::size_t>(ids[i]) + 1];
  }
  std::partial_sum(result.begins.begin(), result.begins.end(), result.begins.begin());
  std::vector<std::int64_t> next = result.begins;
  for (std::size_t i = 0; i < count; ++i) {
    const auto token = static_cast<std::size_t>(ids[i]);
    result.places[static_cast<std::size_t>(next[token]++)] = static_cast<std::int64_t>(i);
  }
  return result;
}

// Rows [first, last) of the gradient: sums, or zeros where a token has no place.
void write_rows(const simd::RowSum& work,
                const PlacesOfTokens& tokens,
                std::size_t first,
                std::size_t last,
                const at::Tensor& result) {
  const std::size_t row_bytes = work.columns * result.element_size();
  auto* const out = static_cast<std::byte*>(result.data_ptr());
  for (std::size_t token = first; token < last; ++token) {
    const auto begin = static_cast<std::size_t>(tokens.begins[token]);
    const auto end = static_cast<std::size_t>(tokens.begins[token + 1]);
    if (begin == end) {
      std::memset(out + token * row_bytes, 0, row_bytes);
    } else {
      simd::sum_rows(work, tokens.places.data() + begin, end - begin, out + token * row_bytes);
    }
  }
}

// Each row of the gradient is written once, straight from the rows in their own type.
at::Tensor fast_gradient(const at::Tensor& grad_NC,
                         const at::Tensor& ids,
                         std::int64_t vocabulary) {
  constexpr std::int64_t kBlockTokens = 256;
  const std::int64_t width = grad_NC.size(1);
  const at::Tensor rows = grad_NC.contiguous();
  at::Tensor result = at::empty({vocabulary, width}, rows.options());
  const PlacesOfTokens tokens = places_of_tokens(ids.data_ptr<std::int64_t>(),
                                                 static_cast<std::size_t>(ids.numel()),
                                                 static_cast<std::size_t>(vocabulary));
  const simd::RowSum work{.storage = storage_of(rows),
                          .columns = static_cast<std::size_t>(width),
                          .rows = rows.data_ptr()};
  for_each_item((vocabulary + kBlockTokens - 1) / kBlockTokens,
                threads_for((vocabulary + rows.size(0)) * width),
                [&](std::int64_t block, int /*thread*/) {
                  const std::int64_t first = block * kBlockTokens;
                  write_rows(work,
                             tokens,
                             static_cast<std::size_t>(first),
                             static_cast<std::size_t>(std::min(vocabulary, first + kBlockTokens)),
                             result);
                });
  return result;
}

struct EmbeddingFunction : torch::autograd::Function<EmbeddingFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& weight_VC,
                            const at::Tensor& ids) {
    context->save_for_backward({ids.contiguous()});
    context->saved_data["vocabulary"] = weight_VC.size(0);
    context->saved_data["fast"] = is_fast(weight_VC);
    return at::embedding(weight_VC, ids);
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const at::Tensor ids = context->get_saved_variables().front();
    const at::Tensor grad_NC = as_rows(grads[0]);
    const std::int64_t vocabulary = context->saved_data["vocabulary"].toInt();
    return {context->saved_data["fast"].toBool() ? fast_gradient(grad_NC, ids, vocabulary)
                                                 : reference_gradient(grad_NC, ids, vocabulary),
            {}};
  }
};

}  // namespace

at::Tensor embedding(const at::Tensor& weight_VC, const at::Tensor& ids) {
  return EmbeddingFunction::apply(weight_VC, ids);
}

}  // namespace zeroth::kernels
