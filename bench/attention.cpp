// What attention by blocks of queries gains over its reference version, forward and backward.
//   zeroth_bench_attention [rounds] [tokens]
// 9 heads on 3 key heads of 64, as in a model of 135M: 4 rows of 256 tokens and one of 2048, or one
// of the given number. The versions run in turns; medians over the rounds, and the median of the
// ratio.
#include "kernels/attention.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/timing.h"
#include "kernels/choice.h"

#include <ATen/ops/randn.h>
#include <torch/csrc/autograd/autograd.h>

namespace {

using namespace zeroth::kernels;
using zeroth::Clock;
using zeroth::median;

struct Shape {
  std::int64_t rows, tokens, window;
};

struct Times {
  double forward = 0;
  double backward = 0;
};

constexpr std::int64_t kHeadDim = 64;

class Bench {
 public:
  Bench(const Shape& shape, at::ScalarType type)
      : first_keys_(causal_first_keys(shape.tokens, shape.tokens, shape.window)),
        q_(heads(shape, 9, type)),
        k_(heads(shape, 3, type)),
        v_(heads(shape, 3, type)),
        grad_(heads(shape, 9, type).detach()) {}

  // Milliseconds of one call, the mean of a few.
  [[nodiscard]] Times time(Choice version) const {
    const ChoiceScope scope(version);
    constexpr int kCalls = 4;
    Times times;
    for (int call = 0; call < kCalls; ++call) {
      const Clock::time_point start = Clock::now();
      const at::Tensor out = attention(q_, k_, v_, first_keys_, 0.125);
      const Clock::time_point middle = Clock::now();
      (void)torch::autograd::grad({out}, {q_, k_, v_}, {grad_});
      times.forward += milliseconds(middle - start) / kCalls;
      times.backward += milliseconds(Clock::now() - middle) / kCalls;
    }
    return times;
  }

 private:
  // Laid out as projections give them: tokens before heads.
  static at::Tensor heads(const Shape& shape, std::int64_t heads, at::ScalarType type) {
    return at::randn({shape.rows, shape.tokens, heads, kHeadDim})
        .to(type)
        .transpose(1, 2)
        .requires_grad_(true);
  }

  static double milliseconds(Clock::duration time) {
    return std::chrono::duration<double, std::milli>(time).count();
  }

  at::Tensor first_keys_, q_, k_, v_, grad_;
};

void print(const char* what,
           const std::vector<double>& reference,
           const std::vector<double>& fast) {
  std::vector<double> ratio;
  for (std::size_t i = 0; i < fast.size(); ++i) {
    ratio.push_back(reference[i] / fast[i]);
  }
  std::printf("  %s: reference %.2f ms, by blocks %.2f ms, %.2f x\n",
              what,
              median(reference),
              median(fast),
              median(ratio));
}

void report(const Shape& shape, at::ScalarType type, int rounds) {
  const Bench bench(shape, type);
  std::vector<double> forward[2];
  std::vector<double> backward[2];
  (void)bench.time(Choice::kReference);
  (void)bench.time(Choice::kAuto);
  for (int round = 0; round < rounds; ++round) {
    for (const Choice version : {Choice::kReference, Choice::kAuto}) {
      const Times times = bench.time(version);
      forward[version == Choice::kAuto ? 1 : 0].push_back(times.forward);
      backward[version == Choice::kAuto ? 1 : 0].push_back(times.backward);
    }
  }
  std::printf("%s, %ld x %ld tokens, window %ld\n",
              type == at::kFloat ? "fp32" : "bf16",
              static_cast<long>(shape.rows),
              static_cast<long>(shape.tokens),
              static_cast<long>(shape.window));
  print("forward", forward[0], forward[1]);
  print("backward", backward[0], backward[1]);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  std::vector<Shape> shapes{{4, 256, 0}, {1, 2048, 0}, {1, 2048, 512}};
  if (argc > 2) {
    shapes = {{1, std::atoll(argv[2]), 0}};
  }
  for (const Shape& shape : shapes) {
    for (const at::ScalarType type : {at::kBFloat16, at::kFloat}) {
      report(shape, type, rounds);
    }
  }
  return 0;
}
