#include "models/unit.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include <ATen/ops/empty.h>

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
  if (!value.defined()) {
    read(begin, values);
    return;
  }
  const auto count = static_cast<std::int64_t>(values.size());
  const at::Tensor wide =
      value.detach().reshape({-1}).narrow(0, begin, count).to(at::kFloat).contiguous();
  std::copy_n(wide.data_ptr<float>(), count, values.begin());
}

void Parameter::materialize() {
  if (value.defined()) {
    return;
  }
  const at::Tensor whole = at::empty(shape, at::kFloat);
  read(0, {whole.data_ptr<float>(), static_cast<std::size_t>(whole.numel())});
  value = whole;
  read = nullptr;
}

}  // namespace zeroth::models
