// How long the operations between the matrix products take in their fast and their reference
// version, forward and backward, side by side in one process: zeroth_bench_elementwise [rounds]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "base/timing.h"
#include "kernels/choice.h"
#include "kernels/cross_entropy.h"
#include "kernels/embedding.h"
#include "kernels/gated.h"
#include "kernels/linear_cross_entropy.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include <fmt/core.h>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

namespace {

using namespace zeroth::kernels;
using zeroth::median;
using Tensors = std::vector<at::Tensor>;
using Operation = std::function<Tensors(const Tensors&)>;

struct Times {
  std::vector<double> forward, backward;  // ms, one a round
};

// Of the process's processors, so that other programs beside it do not count; with one thread
// (OMP_NUM_THREADS=1) what the work itself takes.
double milliseconds_of(const std::function<void()>& work) {
  const std::clock_t begin = std::clock();
  work();
  return 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

void run_once(const Operation& operation,
              const Tensors& inputs,
              const Tensors& trained,
              Times& times) {
  Tensors result;
  times.forward.push_back(milliseconds_of([&] { result = operation(inputs); }));
  Tensors grads;
  for (const at::Tensor& output : result) {
    grads.push_back(at::ones(output.sizes(), output.options()));
  }
  times.backward.push_back(
      milliseconds_of([&] { (void)torch::autograd::grad(result, trained, grads); }));
}

void compare(const std::string& name,
             const Operation& operation,
             const Tensors& inputs,
             int rounds) {
  Tensors trained;
  for (const at::Tensor& input : inputs) {
    if (input.requires_grad()) {
      trained.push_back(input);
    }
  }
  Times fast;
  Times reference;
  for (int round = 0; round <= rounds; ++round) {
    if (round == 1) {
      fast = reference = {};  // the first one warms up
    }
    {
      const ChoiceScope scope(Choice::kReference);
      run_once(operation, inputs, trained, reference);
    }
    run_once(operation, inputs, trained, fast);
  }
  const double sum = median(fast.forward) + median(fast.backward);
  const double reference_sum = median(reference.forward) + median(reference.backward);
  fmt::print("{:34} {:9.3f} {:9.3f} {:9.3f} {:9.3f} {:7.2f}\n",
             name,
             median(reference.forward),
             median(reference.backward),
             median(fast.forward),
             median(fast.backward),
             reference_sum / sum);
  std::fflush(stdout);
}

void compare_all(at::ScalarType dtype, const std::string& type, int rounds) {
  const auto random = [&](at::IntArrayRef shape, bool trained = true) {
    return at::randn(shape).to(dtype).requires_grad_(trained);
  };
  const auto norm = [](const Tensors& in) { return Tensors{rms_norm(in[0], in[1], 1e-5)}; };
  compare(type + " rms_norm [1024, 576]", norm, {random({1024, 576}), random({576})}, rounds);
  compare(
      type + " rms_norm, frozen weight", norm, {random({1024, 576}), random({576}, false)}, rounds);
  compare(
      type + " add_rms_norm [1024, 576]",
      [](const Tensors& in) {
        const SumAndNorm both = add_rms_norm(in[0], in[1], in[2], 1e-5);
        return Tensors{both.sum, both.normed};
      },
      {random({1024, 576}), random({1024, 576}), random({576})},
      rounds);
  for (const auto& [name, activation] : {std::pair{"silu", GateActivation::kSilu},
                                         std::pair{"gelu", GateActivation::kGelu},
                                         std::pair{"gelu_tanh", GateActivation::kGeluTanh}}) {
    compare(
        type + " gated " + name + " [1024, 1536]",
        [kind = activation](const Tensors& in) { return Tensors{gated(in[0], in[1], kind)}; },
        {random({1024, 1536}), random({1024, 1536})},
        rounds);
  }
  const at::Tensor angles = at::randn({1, 256, 32});
  compare(
      type + " rope [4, 256, 9, 64]",
      [cos = angles.cos(), sin = angles.sin()](const Tensors& in) {
        return Tensors{rope(in[0], cos, sin).transpose(1, 2).contiguous()};
      },
      {random({4, 256, 9, 64})},
      rounds);
  const at::Tensor targets = at::randint(0, 49152, {1024}, at::kLong);
  for (const double cap : {0.0, 30.0}) {
    compare(
        type + " cross_entropy" + (cap > 0 ? ", capped" : " [1024, 49152]"),
        [&](const Tensors& in) { return Tensors{cross_entropy_sum(in[0], targets, cap)}; },
        {random({1024, 49152})},
        rounds);
  }
  compare(
      type + " embedding, 1024 of [49152, 576]",
      [&](const Tensors& in) { return Tensors{zeroth::kernels::embedding(in[0], targets)}; },
      {random({49152, 576})},
      rounds);
  const auto head = [&](const Tensors& in) {
    return Tensors{linear_cross_entropy(in[0], in[1], targets)};
  };
  const Tensors inputs{random({1024, 576}), random({49152, 576})};
  compare(type + " linear_cross_entropy", head, inputs, rounds);
  compare(type + " linear_cross_entropy, frozen", head, {inputs[0], inputs[1].detach()}, rounds);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  fmt::print("{:34} {:>9} {:>9} {:>9} {:>9} {:>7}\n",
             "ms, median",
             "ref fwd",
             "ref bwd",
             "fast fwd",
             "fast bwd",
             "times");
  compare_all(at::kBFloat16, "bf16", rounds);
  compare_all(at::kFloat, "fp32", rounds);
}
