#include "models/unit.h"

#include <functional>
#include <numeric>

#include <ATen/ops/from_blob.h>

namespace zeroth::models {

std::int64_t Parameter::numel() const {
  const std::vector<std::int64_t> all = sizes();
  return std::accumulate(all.begin(), all.end(), std::int64_t{1}, std::multiplies<>());
}

ParameterCounts count_parameters(const UnitList& units) {
  ParameterCounts counts;
  for (const auto& unit : units) {
    for (const Parameter& parameter : unit->parameters()) {
      counts.all += parameter.numel();
      counts.trainable += parameter.trainable ? parameter.numel() : 0;
    }
  }
  return counts;
}

void Parameter::read_values(std::int64_t begin, std::span<float> values) const {
  const at::Tensor source = value.defined() ? value.detach() : stored;
  const auto count = static_cast<std::int64_t>(values.size());
  at::from_blob(values.data(), {count}, at::TensorOptions(at::kFloat))
      .copy_(source.reshape({-1}).narrow(0, begin, count));
}

void Parameter::materialize(at::ScalarType dtype) {
  if (!value.defined()) {
    value = stored.to(dtype, /*non_blocking=*/false, /*copy=*/true);
    stored.reset();
  }
}

}  // namespace zeroth::models
