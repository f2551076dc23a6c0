#include "kernels/loss_rows.h"

#include <numeric>

#include "kernels/rows.h"
#include "kernels/simd/cross_entropy.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

namespace zeroth::kernels {
namespace {

simd::CrossEntropy work_of(const at::Tensor& logits_NV,
                           const at::Tensor& targets_N,
                           double soft_cap) {
  return {.storage = storage_of(logits_NV),
          .columns = static_cast<std::size_t>(logits_NV.size(1)),
          .soft_cap = static_cast<float>(soft_cap),
          .logits = logits_NV.data_ptr(),
          .targets = targets_N.data_ptr<std::int64_t>()};
}

void check_targets(const at::Tensor& logits_NV, const at::Tensor& targets_N) {
  ZEROTH_CHECK_EQ(targets_N.size(0), logits_NV.size(0), "one target for each row of logits");
  const auto* const targets = targets_N.data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < targets_N.size(0); ++row) {
    ZEROTH_CHECK(targets[row] >= 0 && targets[row] < logits_NV.size(1),
                 "target {} among {} logits",
                 targets[row],
                 logits_NV.size(1));
  }
}

// [N, 2] fp32 is N of these.
simd::RowSums* row_sums(const at::Tensor& sums) {
  static_assert(sizeof(simd::RowSums) == 2 * sizeof(float));
  return static_cast<simd::RowSums*>(sums.data_ptr());
}

}  // namespace

RowLosses row_losses(const at::Tensor& logits_NV, const at::Tensor& targets_N, double soft_cap) {
  check_targets(logits_NV, targets_N);
  const std::int64_t rows = logits_NV.size(0);
  const RowLosses result{at::empty({rows}, at::kFloat), at::empty({rows, 2}, at::kFloat)};
  const simd::CrossEntropy work = work_of(logits_NV, targets_N, soft_cap);
  auto* const losses = result.losses.data_ptr<float>();
  for_rows(rows, logits_NV.size(1), [&](std::size_t first, std::size_t last) {
    simd::cross_entropy(work, row_sums(result.sums), losses, first, last);
  });
  return result;
}

void row_gradients(const at::Tensor& logits_NV,
                   const at::Tensor& targets_N,
                   const at::Tensor& sums,
                   double soft_cap,
                   float scale,
                   const at::Tensor& out) {
  const simd::CrossEntropy work = work_of(logits_NV, targets_N, soft_cap);
  for_rows(logits_NV.size(0), logits_NV.size(1), [&](std::size_t first, std::size_t last) {
    simd::cross_entropy_backward(work, row_sums(sums), scale, out.data_ptr(), first, last);
  });
}

at::Tensor sum_of_losses(const at::Tensor& losses_N) {
  const auto* const losses = losses_N.data_ptr<float>();
  return at::full({}, std::accumulate(losses, losses + losses_N.size(0), 0.0), at::kFloat);
}

}  // namespace zeroth::kernels
