// The story that this project began with, as a program of the library's user: the file says 32 rows
// an update, and the loader gives one row a rank. With "step_once" as third word it counts
// micro-batches itself; with "die" rank 1 ends without a word.
#include <cstdlib>
#include <string>

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "zeroth/zeroth.h"

namespace {

zeroth::Model line() {
  const at::Tensor w = at::zeros({1});
  return {.units = {{.name = "line",
                     .parameters = {{.name = "w", .value = w}},
                     .forward =
                         [w](const at::Tensor&, const zeroth::Pass& pass) {
                           return pass.batch.tensors[0].mul(w);
                         }}},
          .loss = [](const at::Tensor& y, const zeroth::Batch& batch) -> zeroth::Loss {
            return {y.sum(), batch.tensors[0].size(0)};
          }};
}

void train(const zeroth::Runtime& runtime,
           const std::string& settings,
           std::int64_t rows,
           const std::string& mistake) {
  zeroth::Engine engine = zeroth::initialize(runtime, line(), zeroth::Config::from_file(settings));
  for (int micro_batch = 0; micro_batch < 4; ++micro_batch) {
    engine.backward(engine.forward({.tensors = {at::ones({rows})}}));
    if (mistake == "die" && runtime.rank() == 1) {
      std::_Exit(9);
    }
    if (mistake != "step_once") {
      (void)engine.step();
    }
  }
  (void)engine.step();
}

}  // namespace

int main(int argc, char** argv) {
  return zeroth::run([&](zeroth::Runtime& runtime) {
    train(runtime, argv[1], std::atoll(argv[2]), argc > 3 ? argv[3] : "");
  });
}
