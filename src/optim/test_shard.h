#pragma once

#include <cmath>
#include <vector>

#include "optim/optimizer.h"

// A shard of plain vectors for this folder's tests.
namespace zeroth::optim {

struct TestShard {
  std::vector<float> master, gradients, first, second;
  std::vector<Segment> segments;
  std::vector<double> ratios{};

  // All weights 1; one segment over all of it.
  explicit TestShard(std::size_t numel)
      : master(numel, 1.0F),
        gradients(numel),
        first(numel),
        second(numel),
        segments{{.range = {0, static_cast<std::int64_t>(numel)}}} {}

  [[nodiscard]] ShardView view() {
    return {.master = master,
            .gradients = gradients,
            .moments = {first, second},
            .segments = segments,
            .ratios = ratios};
  }

  void set_gradients(double value) {
    gradients.assign(gradients.size(), static_cast<float>(value));
  }
};

// The gradient of update t in the tests that follow a formula.
[[nodiscard]] inline double test_gradient(int t) {
  return std::sin(t);
}

}  // namespace zeroth::optim
