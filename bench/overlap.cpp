// How much of a slow link the engine hides behind compute.
//   zeroth_bench_overlap [delay in ms] [rounds]
// Two ranks as threads train a chain of units, each of which computes for about as long as a
// collective takes. Every collective is made to last `delay` longer, one after the other, as on one
// link. Printed per stage: the time of an update without delay, with it and overlapped, with it and
// blocking; and the share of min(added delay, compute) that overlap hides.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "base/timing.h"
#include "comm/make.h"
#include "comm/watched_communicator.h"
#include "engine/engine.h"

#include <ATen/Parallel.h>
#include <ATen/ops/ones.h>
#include <torch/csrc/autograd/custom_function.h>

namespace {

using namespace zeroth;

constexpr int kUnits = 8;
constexpr int kMicroSteps = 4;
constexpr std::int64_t kWidth = 256;

double milliseconds(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

// Sleeps instead of computing, so that two ranks on any machine compute beside each other for a
// known time; sleeping in backward too.
class Busy : public torch::autograd::Function<Busy> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& x,
                            std::int64_t milliseconds) {
    context->saved_data["ms"] = milliseconds;
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    return x.clone();
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2 * context->saved_data["ms"].toInt()));
    return {grads[0], at::Tensor()};
  }
};

class BusyUnit : public models::Unit {
 public:
  BusyUnit(int index, std::int64_t milliseconds)
      : Unit("unit " + std::to_string(index)), last_(index + 1 == kUnits), ms_(milliseconds) {
    parameters_.push_back({.name = "w" + std::to_string(index),
                           .value = at::ones({kWidth, kWidth}),
                           .trainable = true});
  }

  [[nodiscard]] at::Tensor forward(const models::ForwardContext& context,
                                   const at::Tensor& input) override {
    const at::Tensor x = input.defined() ? input : context.batch.inputs[0];
    const at::Tensor y = Busy::apply(x * parameters_[0].value.mean(), ms_);
    return last_ ? y.sum() : y;
  }

 private:
  bool last_;
  std::int64_t ms_;
};

struct Times {
  double update = 0;
  std::int64_t collectives = 0;  // of an update
};

Times time_rank(std::shared_ptr<comm::Communicator> comm,
                int stage,
                std::chrono::milliseconds delay,
                bool overlap,
                std::int64_t unit_ms) {
  at::set_num_threads(1);
  std::int64_t collectives = 0;
  comm = comm::make_watched_communicator(
      std::move(comm),
      {.started = [&](comm::Communicator&, const comm::Traffic&) { ++collectives; },
       .waited = {},
       .delay = delay});
  models::UnitList units;
  for (int index = 0; index < kUnits; ++index) {
    units.push_back(std::make_unique<BusyUnit>(index, unit_ms));
  }
  engine::EngineOptions options{.zero_stage = stage, .accumulation_steps = kMicroSteps};
  options.tuning.overlap = overlap;
  if (!overlap) {
    options.tuning.prefetch_elements = 0;
  }
  options.schedule = {.kind = arithmetic::ScheduleKind::kConstant, .peak = 1e-6};
  engine::Engine engine(units, optim::make_sgd({}), options, comm);
  const models::TokenBatch batch{.num_targets = 1, .inputs = {at::ones({1})}};
  const auto update = [&] {
    for (int micro_step = 0; micro_step < kMicroSteps; ++micro_step) {
      engine.backward(engine.forward(batch));
      (void)engine.step();
    }
  };
  update();
  collectives = 0;
  const Clock::time_point start = Clock::now();
  update();
  return {.update = milliseconds(Clock::now() - start), .collectives = collectives};
}

Times time_update(int stage, std::chrono::milliseconds delay, bool overlap, std::int64_t unit_ms) {
  auto group = comm::make_thread_group(2);
  std::vector<Times> times(group.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    threads.emplace_back([&, rank] {
      times[rank] = time_rank(std::move(group[rank]), stage, delay, overlap, unit_ms);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return times[0];
}

void report(int stage, std::chrono::milliseconds delay, int rounds) {
  const std::int64_t unit_ms = delay.count();
  std::vector<double> without, overlapped, blocking, hidden;
  for (int round = 0; round < rounds; ++round) {
    const Times plain = time_update(stage, std::chrono::milliseconds(0), true, unit_ms);
    const Times slow = time_update(stage, delay, true, unit_ms);
    const Times waiting = time_update(stage, delay, false, unit_ms);
    const double added = static_cast<double>(slow.collectives * delay.count());
    without.push_back(plain.update);
    overlapped.push_back(slow.update);
    blocking.push_back(waiting.update);
    hidden.push_back((plain.update + added - slow.update) / std::min(added, plain.update));
  }
  const auto [least, most] = std::minmax_element(hidden.begin(), hidden.end());
  std::printf(
      "stage %d: update %.0f ms without delay, %.0f overlapped, %.0f blocking; hidden %.1f %% of "
      "min(added delay, compute) (%.1f - %.1f)\n",
      stage,
      median(without),
      median(overlapped),
      median(blocking),
      100 * median(hidden),
      100 * *least,
      100 * *most);
}

}  // namespace

int main(int argc, char** argv) {
  const std::chrono::milliseconds delay(argc > 1 ? std::atoi(argv[1]) : 20);
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 3;
  for (int stage = 0; stage <= 3; ++stage) {
    report(stage, delay, rounds);
  }
  return 0;
}
