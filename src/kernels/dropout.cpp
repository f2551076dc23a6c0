#include "kernels/dropout.h"

#include "base/check.h"
#include "base/random.h"
#include "kernels/parallel.h"

#include <ATen/ops/empty.h>

namespace zeroth::kernels {
namespace {

// A row's factors: 0 or 1 / (1 - probability).
void fill_row(float* factors,
              std::int64_t numel,
              double probability,
              std::uint64_t key,
              std::uint64_t position) {
  const auto threshold = static_cast<std::uint32_t>(probability * 0x1.0p32);
  const auto kept = static_cast<float>(1.0 / (1.0 - probability));
  for (std::int64_t i = 0; i < numel; i += 4) {
    const auto draws = philox(key, static_cast<std::uint64_t>(i / 4), position);
    for (std::int64_t j = 0; j < 4 && i + j < numel; ++j) {
      factors[i + j] = draws[static_cast<std::size_t>(j)] < threshold ? 0.0F : kept;
    }
  }
}

}  // namespace

at::Tensor dropout(const at::Tensor& x_BTC, double probability, const DropoutKey& key) {
  ZEROTH_CHECK_EQ(
      x_BTC.size(0), static_cast<std::int64_t>(key.rows.size()), "one identity for each row");
  ZEROTH_CHECK(probability >= 0 && probability < 1, "dropout probability {}", probability);
  if (probability == 0) {
    return x_BTC;
  }
  const std::int64_t row_numel = x_BTC.size(1) * x_BTC.size(2);
  at::Tensor factors = at::empty(x_BTC.sizes(), at::kFloat);
  auto* data = factors.data_ptr<float>();
  const std::uint64_t module_key = key.seed ^ (key.module * 0x9E3779B97F4A7C15U);
  for_each_range(x_BTC.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      const auto row = static_cast<std::uint64_t>(key.rows[static_cast<std::size_t>(b)]);
      const std::uint64_t position = (static_cast<std::uint64_t>(key.update) << 32U) ^ row;
      fill_row(data + b * row_numel, row_numel, probability, module_key, position);
    }
  });
  return x_BTC * factors.to(x_BTC.scalar_type());
}

}  // namespace zeroth::kernels
