// What an update of a model that rests in files costs, against the least that it could.
//   zeroth_bench_offload [folder] [rows] [units] [rounds]
// One rank trains a chain of linear layers of 4096 x 4096 with AdamW, bf16, at stage 3. Printed per
// placement: seconds of an update; those of the same update in memory (compute); the bytes that an
// update reads and writes, and the seconds that the disk needs for them at the speed it has in this
// process; and the ratio of the first to the larger of the other two: medians and spread of rounds.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/timing.h"
#include "comm/make.h"
#include "engine/engine.h"
#include "offload/choose_io.h"

#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>

namespace {

using namespace zeroth;

constexpr std::int64_t kWidth = 4096;
constexpr double kGB = 1e9;

// The same for all layers.
const at::Tensor& first_values() {
  static const at::Tensor values = at::randn({kWidth, kWidth}).mul_(0.01).to(at::kBFloat16);
  return values;
}

class Linear : public models::Unit {
 public:
  Linear(int index, bool last) : Unit("unit " + std::to_string(index)), last_(last) {
    models::Parameter weight;
    weight.name = "w" + std::to_string(index);
    weight.trainable = true;
    weight.shape = {kWidth, kWidth};
    weight.stored = first_values();
    parameters_.push_back(std::move(weight));
  }

  [[nodiscard]] at::Tensor forward(const models::ForwardContext& context,
                                   const at::Tensor& input) override {
    const at::Tensor x = input.defined() ? input : context.batch.inputs[0];
    const at::Tensor y = at::linear(x, parameters_[0].value);
    return last_ ? y.to(at::kFloat).sum() : y;
  }

 private:
  bool last_;
};

struct Shape {
  std::int64_t rows;
  int units;
};

struct Measured {
  double seconds = 0;
  offload::Traffic moved;
};

engine::EngineOptions options_for(const zero::Resting& resting) {
  engine::EngineOptions options{.zero_stage = 3, .dtype = at::kBFloat16};
  options.tuning.resting = resting;
  options.schedule = {.kind = arithmetic::ScheduleKind::kConstant, .peak = 1e-6};
  return options;
}

// The mean of two updates after the first.
Measured time_update(const Shape& shape, const zero::Resting& resting) {
  models::UnitList units;
  for (int index = 0; index < shape.units; ++index) {
    units.push_back(std::make_unique<Linear>(index, index + 1 == shape.units));
  }
  engine::Engine engine(units, optim::make_adamw({}), options_for(resting));
  const models::TokenBatch batch{
      .num_targets = shape.rows,
      .inputs = {at::randn({shape.rows, kWidth}, at::TensorOptions(at::kBFloat16))}};
  const auto update = [&] {
    engine.backward(engine.forward(batch));
    (void)engine.step();
  };
  update();
  constexpr int kUpdates = 2;
  const offload::Traffic before = engine.offload_traffic();
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < kUpdates; ++i) {
    update();
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const offload::Traffic after = engine.offload_traffic();
  return {.seconds = seconds / kUpdates,
          .moved = {.read = (after.read - before.read) / kUpdates,
                    .written = (after.written - before.written) / kUpdates}};
}

void report(const char* name, const Shape& shape, const zero::Resting& resting, int rounds) {
  std::vector<double> on_file;
  std::vector<double> in_memory;
  std::vector<double> disk;
  std::vector<double> ratio;
  offload::Traffic moved;
  for (int round = 0; round < rounds; ++round) {
    const offload::ChosenIo io = offload::choose_io(
        resting.optimizer_folder, resting.io, std::nullopt, std::int64_t{512} << 20);
    const Measured there = time_update(shape, resting);
    moved = there.moved;
    on_file.push_back(there.seconds);
    in_memory.push_back(time_update(shape, {}).seconds);
    disk.push_back(static_cast<double>(moved.read) / io.speed.read_bytes_per_s +
                   static_cast<double>(moved.written) / io.speed.write_bytes_per_s);
    ratio.push_back(on_file.back() / std::max(in_memory.back(), disk.back()));
    if (round == 0) {
      std::printf("%s: %s\n", name, io.text.c_str());
    }
  }
  const auto [least, most] = std::minmax_element(ratio.begin(), ratio.end());
  std::printf(
      "%s: %.2f s an update; compute alone %.2f s; %.2f GB read and %.2f GB written, for which the "
      "disk needs %.2f s; %.2f x the larger (%.2f - %.2f)\n",
      name,
      median(on_file),
      median(in_memory),
      static_cast<double>(moved.read) / kGB,
      static_cast<double>(moved.written) / kGB,
      median(disk),
      median(ratio),
      *least,
      *most);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : "/tmp";
  const Shape shape{.rows = argc > 2 ? std::atoll(argv[2]) : 2048,
                    .units = argc > 3 ? std::atoi(argv[3]) : 12};
  const int rounds = argc > 4 ? std::atoi(argv[4]) : 3;
  zero::Resting resting{.optimizer = zero::Place::kFile};
  resting.optimizer_folder = resting.parameter_folder = folder;
  report("optimizer state in files", shape, resting, rounds);
  resting.parameters = zero::Place::kFile;
  report("all state in files", shape, resting, rounds);
  return 0;
}
