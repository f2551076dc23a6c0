#include "shapes/model_shape.h"

#include <functional>
#include <numeric>

namespace zeroth::shapes {

std::int64_t ParameterShape::numel() const noexcept {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::int64_t ModelShape::num_parameters() const noexcept {
  std::int64_t sum = 0;
  for (const UnitShape& unit : units) {
    for (const ParameterShape& parameter : unit.parameters) {
      sum += parameter.numel();
    }
  }
  return sum;
}

}  // namespace zeroth::shapes
