// An update on random weights and rows, measured: how fast, where the time goes, and how much of it
// the products alone would take.
#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/phases.h"
#include "base/timing.h"
#include "config/report.h"
#include "kernels/in_use.h"
#include "memory/process_memory.h"
#include "observe/progress.h"
#include "plan/input.h"
#include "plan/needs.h"
#include "shapes/families.h"
#include "shapes/products.h"
#include "train/engine_options.h"
#include "worker/commands.h"
#include "worker/inputs.h"
#include "worker/packing.h"
#include "worker/roofline.h"
#include "worker/tables.h"
#include <fmt/format.h>

#include <ATen/ops/randint.h>

namespace zeroth::worker {
namespace {

std::int64_t tokens_of_row(const config::RunConfig& config, const formats::ModelConfig& model) {
  return config.data.longest_row(model.max_position_embeddings);
}

// Weights that do not train lie there as if they had come from a file, so that ranks share them.
models::Model random_model(const config::RunConfig& config, const plan::PlanInput& input) {
  models::Model model = models::random_model(input.model,
                                             {.dtype = train::compute_dtype(config),
                                              .lora = input.lora,
                                              .freeze = input.freeze,
                                              .seed = config.seed});
  for (const auto& unit : model.units) {
    for (models::Parameter& parameter : unit->parameters()) {
      if (!parameter.trainable) {
        parameter.shape = parameter.value.sizes().vec();
        parameter.stored = std::exchange(parameter.value, at::Tensor());
      }
    }
  }
  return model;
}

models::TokenBatch random_batch(const config::RunConfig& config,
                                const formats::ModelConfig& model,
                                std::int64_t micro_step,
                                std::int64_t rank) {
  const std::int64_t rows = config.batch.micro_batch_rows;
  const std::int64_t tokens = tokens_of_row(config, model);
  models::TokenBatch batch;
  batch.ids_BT = at::randint(0, model.vocab_size, {rows, tokens}, at::TensorOptions(at::kLong));
  batch.labels_BT = batch.ids_BT;
  for (std::int64_t row = 0; row < rows; ++row) {
    batch.rows.push_back((micro_step * config.batch.world_size + rank) * rows + row);
  }
  batch.num_targets = rows * (tokens - 1);
  return batch;
}

// What the updates took.
struct Measured {
  double first = 0;             // seconds of the first one, which makes all that lasts
  std::vector<double> seconds;  // of each that counts
  PhaseSeconds phases;          // of all of these
  std::int64_t page_faults = 0;

  [[nodiscard]] double of_update() const { return median(seconds); }

  [[nodiscard]] double per_update(Phase phase) const {
    return phases.of(phase) / static_cast<double>(seconds.size());
  }
};

class Bench {
 public:
  Bench(const config::RunConfig& config, const formats::ModelConfig& model, engine::Engine& engine)
      : config_(config), engine_(engine) {
    for (std::int64_t step = 0; step < config.batch.accumulation; ++step) {
      batches_.push_back(random_batch(config, model, step, engine.comm().rank()));
    }
  }

  Measured run() {
    Measured measured;
    for (std::int64_t i = 0; i < config_.bench.warmup; ++i) {
      const double seconds = update();
      measured.first = i == 0 ? seconds : measured.first;
    }
    const std::int64_t faults = memory::minor_page_faults();
    start_phases();
    for (std::int64_t i = 0; i < config_.bench.updates; ++i) {
      measured.seconds.push_back(update());
    }
    measured.phases = finish_phases();
    measured.page_faults = memory::minor_page_faults() - faults;
    return measured;
  }

 private:
  double update() {
    engine_.comm().barrier("an update that is measured");
    const Clock::time_point begin = Clock::now();
    for (const models::TokenBatch& batch : batches_) {
      engine_.backward(engine_.forward(batch));
      (void)engine_.step();
    }
    engine_.settle();
    return seconds_since(begin);
  }

  const config::RunConfig& config_;
  engine::Engine& engine_;
  std::vector<models::TokenBatch> batches_;
};

std::vector<shapes::ProductShape> products_of(const config::RunConfig& config,
                                              const models::Model& model) {
  const std::int64_t tokens = tokens_of_row(config, model.config);
  const shapes::ProductRows rows{.tokens = config.batch.micro_batch_rows * tokens,
                                 .targets = config.batch.micro_batch_rows * (tokens - 1)};
  return shapes::products_of_micro_step(
      model.shape,
      rows,
      [&](const std::string& name) {
        const models::Parameter* parameter = model.find(name);
        return parameter != nullptr && parameter->trainable;
      },
      [&](const std::string& module) { return model.lora.find(module) != nullptr; });
}

// The micro-steps of an update have equal products.
ProductSeconds products_alone(const config::RunConfig& config,
                              const models::Model& model,
                              const engine::EngineOptions& options) {
  const ProductSeconds once =
      time_products(products_of(config, model), options.dtype, options.pack_weights);
  const auto micro_steps = static_cast<double>(config.batch.accumulation);
  return {.cold = micro_steps * once.cold, .hot = micro_steps * once.hot};
}

// The products that read packed weights: where nothing is frozen, none do.
kernels::Packing packing_in(const models::Model& model, kernels::Packing asked) {
  for (const auto& unit : model.units) {
    for (const models::Parameter& parameter : unit->parameters()) {
      if (parameter.packed != nullptr) {
        return asked;
      }
    }
  }
  return kernels::Packing::kNone;
}

const char* name_of(kernels::Packing packing) {
  switch (packing) {
    case kernels::Packing::kForward:
      return "forward";
    case kernels::Packing::kBoth:
      return "both";
    case kernels::Packing::kNone:
      break;
  }
  return "none";
}

struct Result {
  Measured measured;
  ProductSeconds products;
  kernels::Packing packing = kernels::Packing::kNone;
  std::int64_t tokens = 0;  // of an update, over all ranks
  std::int64_t peak = 0;
  std::int64_t planned = 0;
  std::int64_t process = 0;

  [[nodiscard]] double tokens_per_second() const {
    return static_cast<double>(tokens) / measured.of_update();
  }

  [[nodiscard]] double share(double seconds) const { return seconds / measured.of_update(); }
};

Json json_of(const Result& result) {
  Json phases = Json::object();
  for (std::size_t i = 0; i < kNumPhases; ++i) {
    const auto phase = static_cast<Phase>(i);
    phases[name_of(phase)] = result.measured.per_update(phase);
  }
  const auto [least, most] =
      std::minmax_element(result.measured.seconds.begin(), result.measured.seconds.end());
  return {
      {"tokens_per_second", result.tokens_per_second()},
      {"seconds_per_update", result.measured.of_update()},
      {"seconds_range", {*least, *most}},
      {"first_update_seconds", result.measured.first},
      {"roofline", result.share(result.products.cold)},
      {"roofline_hot", result.share(result.products.hot)},
      {"products_alone_seconds", {{"cold", result.products.cold}, {"hot", result.products.hot}}},
      {"packed_weights", name_of(result.packing)},
      {"phases", phases},
      {"peak_memory_bytes", result.peak},
      {"planned_memory_bytes", result.planned},
      {"process_memory_bytes", result.process},
      {"page_faults_per_update",
       static_cast<double>(result.measured.page_faults) /
           static_cast<double>(result.measured.seconds.size())}};
}

std::string text_of(const Result& result) {
  std::string text = fmt::format(
      "{:.0f} tokens/s, {:.3f} s an update (median of {})\n"
      "roofline {:.2f}: its products alone take {:.3f} s, {:.3f} s with hot operands\n"
      "frozen weights are packed for: {}",
      result.tokens_per_second(),
      result.measured.of_update(),
      result.measured.seconds.size(),
      result.share(result.products.cold),
      result.products.cold,
      result.products.hot,
      name_of(result.packing));
  for (std::size_t i = 0; i < kNumPhases; ++i) {
    const auto phase = static_cast<Phase>(i);
    const double seconds = result.measured.per_update(phase);
    text += fmt::format("\n  {:<12} {:>8.1f} ms  {:>3.0f} %",
                        name_of(phase),
                        seconds * 1e3,
                        100 * result.share(seconds));
  }
  return text + fmt::format("\nmemory: {} at the most, planned {}; the process has {}",
                            observe::bytes_text(result.peak),
                            observe::bytes_text(result.planned),
                            observe::bytes_text(result.process));
}

plan::PlanInput plan_input(const config::RunConfig& config, const formats::ModelConfig& model) {
  plan::PlanInput input = plan::input_of(config, model);
  input.row_tokens = tokens_of_row(config, model);
  input.row_targets = input.row_tokens - 1;
  input.reads_file_as_stored = false;  // random weights are in memory
  return input;
}

}  // namespace

void run_bench(const config::RunConfig& config, const CommPtr& comm) {
  log::info(config::start_table(config));
  const formats::ModelConfig model_config = shapes::read_model_config(config.model.model_config);
  const std::int64_t before = memory::proportional_set_bytes();
  auto tally = std::make_shared<memory::Tally>();
  const plan::PlanInput input =
      settled(plan_input(config, model_config), train::compute_dtype(config), *comm);
  models::Model model = random_model(config, input);
  log::info(model_line(model, config));
  log::info("kernels: " + kernels::kernels_in_use(train::compute_dtype(config)));
  engine::EngineOptions options = train::engine_options(
      config,
      {.kind = arithmetic::ScheduleKind::kConstant, .peak = config.optimizer.learning_rate});
  options.pack_weights = packing_of(input.packed);
  engine::Engine engine(model.units, train::make_optimizer(config.optimizer), options, comm, tally);
  Result result;
  result.packing = packing_in(model, options.pack_weights);
  result.measured = Bench(config, model_config, engine).run();
  result.process = memory::proportional_set_bytes() - before;
  result.tokens = config.batch.world_size * config.batch.accumulation *
                  config.batch.micro_batch_rows * tokens_of_row(config, model_config);
  result.peak = engine.tally().peak_bytes();
  result.planned = plan::needs_of(input, plan::size_of(input)).device.total().count();
  comm->barrier("products alone");
  result.products = products_alone(config, model, options);
  comm->barrier("end of the bench");
  if (comm->rank() != 0) {
    return;
  }
  log::info(text_of(result));
  if (config.json_output) {
    std::puts(json_of(result).dump().c_str());
  }
}

}  // namespace zeroth::worker
