// Fits w to 3 by way of the installed library; light headers alone.
#include <cstdio>

#include <zeroth/zeroth.h>

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

int main() {
  return zeroth::run([](zeroth::Runtime& runtime) {
    const at::Tensor w = at::zeros({1});
    zeroth::Model model{
        .units = {{.name = "line",
                   .parameters = {{.name = "w", .value = w}},
                   .forward =
                       [w](const at::Tensor&, const zeroth::Pass& pass) {
                         return pass.batch.tensors[0].mul(w);
                       }}},
        .loss = [](const at::Tensor& y, const zeroth::Batch& batch) -> zeroth::Loss {
          return {y.sub(3).square().sum(), batch.tensors[0].size(0)};
        }};
    zeroth::Config config;
    config.set("train_micro_batch_size_per_gpu", 2)
        .set("gradient_accumulation_steps", 2)
        .set("optimizer.type", "SGD")
        .set("learning_rate", 0.25)
        .set("gradient_clipping", 0.0);
    zeroth::Engine engine = zeroth::initialize(runtime, std::move(model), config);
    for (int micro_batch = 0; micro_batch < 20; ++micro_batch) {
      engine.backward(engine.forward({.tensors = {at::ones({2})}}));
      (void)engine.step();
    }
    std::printf("w %.3f after %d updates\n",
                engine.parameter("w").item<double>(),
                static_cast<int>(engine.num_updates()));
  });
}
