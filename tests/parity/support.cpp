#include "parity/support.h"

#include <cstdlib>
#include <string_view>

#include "kernels/choice.h"
#include "memory/tensor_tally.h"
#include "shapes/families.h"

#include <ATen/ATen.h>

namespace zeroth::parity {
namespace {

// ctest runs some of the programs a second time, with the reference kernels.
const bool kUsesReference = [] {
  const char* kernels = std::getenv("ZEROTH_TEST_KERNELS");
  const bool reference = kernels != nullptr && std::string_view(kernels) == "reference";
  if (reference) {
    kernels::set_choice(kernels::Choice::kReference);
  }
  return reference;
}();

}  // namespace

std::filesystem::path shared_data() {
  return std::filesystem::path(ZEROTH_SOURCE_DIR) / "../shared/data";
}

std::filesystem::path golden() {
  return std::filesystem::path(ZEROTH_SOURCE_DIR) / "tests/golden";
}

at::Tensor tensor(const formats::SafetensorsFile& file, const std::string& name) {
  const formats::TensorView& view = file.at(name);
  const at::ScalarType dtype = view.dtype == formats::DType::kI64   ? at::kLong
                               : view.dtype == formats::DType::kF64 ? at::kDouble
                                                                    : at::kFloat;
  auto* data = const_cast<std::byte*>(view.bytes.data());
  return at::from_blob(data, view.shape, at::TensorOptions(dtype)).clone();
}

double relative_norm(const at::Tensor& value, const at::Tensor& reference) {
  const at::Tensor wide = reference.to(at::kDouble);
  return ((value.to(at::kDouble) - wide).norm() / wide.norm()).item<double>();
}

double worst_excess(const at::Tensor& value,
                    const at::Tensor& reference,
                    double absolute,
                    double relative) {
  const at::Tensor wide = reference.to(at::kDouble);
  return ((value.to(at::kDouble) - wide).abs() / (wide.abs() * relative + absolute))
      .max()
      .item<double>();
}

at::Tensor patterned_ids(std::int64_t rows, std::int64_t tokens) {
  return (at::arange(0, rows * tokens, at::kLong) * 97 % 509 + 3).view({rows, tokens});
}

models::TokenBatch batch_of(const at::Tensor& ids_BT, const at::Tensor& labels_BT) {
  models::TokenBatch batch{.ids_BT = ids_BT, .labels_BT = labels_BT};
  for (std::int64_t row = 0; row < ids_BT.size(0); ++row) {
    batch.rows.push_back(row);
  }
  if (labels_BT.defined()) {
    batch.num_targets =
        (labels_BT.narrow(1, 1, labels_BT.size(1) - 1) != -100).sum().item<std::int64_t>();
  }
  return batch;
}

models::TokenBatch rows_of(const models::TokenBatch& batch,
                           std::int64_t first,
                           std::int64_t count) {
  models::TokenBatch part = batch_of(batch.ids_BT.narrow(0, first, count).contiguous(),
                                     batch.labels_BT.narrow(0, first, count).contiguous());
  part.rows.assign(batch.rows.begin() + first, batch.rows.begin() + first + count);
  return part;
}

Trainee make_trainee(TraineeOptions options) {
  const auto weights = std::make_shared<const formats::ModelWeights>(options.folder);
  const formats::ModelConfig config = shapes::read_model_config(
      options.config.empty() ? options.folder / "config.json" : options.config);
  auto tally = std::make_shared<memory::Tally>();
  Trainee trainee;
  {
    const memory::TensorScope counted(tally, memory::Purpose::kWeights);
    trainee.model = models::load_model(config, weights, options.model);
  }
  if (!options.adapter.empty()) {
    models::load_adapter(trainee.model, formats::SafetensorsFile(options.adapter));
  }
  for (const auto& unit : trainee.model.units) {
    for (models::Parameter& parameter : unit->parameters()) {
      parameter.decays = parameter.decays || options.all_decay;
    }
  }
  options.engine.dtype = options.model.dtype;
  trainee.engine = std::make_unique<engine::Engine>(trainee.model.units,
                                                    std::move(options.optimizer),
                                                    options.engine,
                                                    std::move(options.comm),
                                                    std::move(tally));
  return trainee;
}

at::Tensor logits(engine::Engine& engine, const at::Tensor& ids_BT) {
  const models::TokenBatch batch = batch_of(ids_BT, {});
  return engine.infer({.batch = batch});
}

engine::StepReport train_window(engine::Engine& engine,
                                const std::vector<models::TokenBatch>& micro_batches) {
  engine.set_window(static_cast<std::int64_t>(micro_batches.size()));
  engine::StepReport report;
  for (const models::TokenBatch& batch : micro_batches) {
    engine.backward(engine.forward(batch));
    report = engine.step();
  }
  return report;
}

arithmetic::Schedule constant_rate(double rate) {
  return {.kind = arithmetic::ScheduleKind::kConstant, .peak = rate};
}

}  // namespace zeroth::parity
