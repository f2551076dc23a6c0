#include "zero/first_values.h"

#include <algorithm>
#include <span>

#include <ATen/ops/zeros.h>

namespace zeroth::zero {
namespace {

using shard::Range;

constexpr std::int64_t kPartElements = 1 << 20;

std::size_t as_size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

at::Tensor values_of(const std::vector<models::Parameter*>& parameters,
                     const shard::FlatLayout& layout,
                     Range range) {
  at::Tensor values = at::zeros({range.size()}, at::kFloat);
  const std::span<float> elements(values.data_ptr<float>(), as_size(range.size()));
  for (std::size_t index = 0; index < parameters.size(); ++index) {
    const Range place = layout.parameter(index);
    const Range here = shard::intersect(place, range);
    if (here.size() > 0) {
      parameters[index]->read_values(
          here.begin - place.begin,
          elements.subspan(as_size(here.begin - range.begin), as_size(here.size())));
    }
  }
  return values;
}

}  // namespace

void read_first_values(const std::vector<models::Parameter*>& parameters,
                       const shard::FlatLayout& layout,
                       Range range,
                       const std::function<void(Range, const at::Tensor&)>& take) {
  for (std::int64_t begin = range.begin; begin < range.end; begin += kPartElements) {
    const Range part{.begin = begin, .end = std::min(range.end, begin + kPartElements)};
    take(part, values_of(parameters, layout, part));
  }
}

}  // namespace zeroth::zero
