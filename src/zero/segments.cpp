#include "zero/segments.h"

namespace zeroth::zero {
std::vector<optim::Segment> segments_of(const std::vector<models::Parameter*>& parameters,
                                        const shard::FlatLayout& layout,
                                        shard::Range range) {
  std::vector<optim::Segment> segments;
  for (std::size_t index = 0; index < parameters.size(); ++index) {
    const shard::Range part = shard::intersect(layout.parameter(index), range);
    if (part.size() == 0) {
      continue;
    }
    segments.push_back({.range = {.begin = part.begin - range.begin, .end = part.end - range.begin},
                        .decays = parameters[index]->decays,
                        .rate_factor = parameters[index]->rate_factor,
                        .weight_decay = parameters[index]->weight_decay,
                        .parameter = static_cast<std::int64_t>(index)});
  }
  return segments;
}

std::vector<optim::Segment> merged(const std::vector<optim::Segment>& segments) {
  std::vector<optim::Segment> result;
  for (const optim::Segment& segment : segments) {
    if (!result.empty() && optim::move_alike(result.back(), segment)) {
      result.back().range.end = segment.range.end;
    } else {
      result.push_back(segment);
    }
  }
  return result;
}

}  // namespace zeroth::zero
