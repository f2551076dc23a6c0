#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "engine/engine.h"
#include "formats/safetensors.h"
#include "models/model.h"

#include <ATen/core/Tensor.h>

// What the parity tests share: reference tensors, models with an engine around them, distances.
namespace zeroth::parity {

[[nodiscard]] std::filesystem::path
shared_data();  // ../shared/data beside the repository; may be absent
[[nodiscard]] std::filesystem::path golden();  // tests/golden

// A copy of the tensor in its own type.
[[nodiscard]] at::Tensor tensor(const formats::SafetensorsFile& file, const std::string& name);

// ||value - reference|| / ||reference||, in fp64.
[[nodiscard]] double relative_norm(const at::Tensor& value, const at::Tensor& reference);

// The largest |value - reference| / (absolute + relative * |reference|): at most 1 when all
// elements agree.
[[nodiscard]] double worst_excess(const at::Tensor& value,
                                  const at::Tensor& reference,
                                  double absolute,
                                  double relative);

// A batch of all rows; labels may be undefined.
[[nodiscard]] models::TokenBatch batch_of(const at::Tensor& ids_BT, const at::Tensor& labels_BT);
[[nodiscard]] models::TokenBatch rows_of(const models::TokenBatch& batch,
                                         std::int64_t first,
                                         std::int64_t count);

// int64 [rows, tokens]: the same numbers every time, from 3 to 511.
[[nodiscard]] at::Tensor patterned_ids(std::int64_t rows, std::int64_t tokens);

// A model of a folder and the engine that trains it.
struct Trainee {
  models::Model model;
  std::unique_ptr<engine::Engine> engine;
};

struct TraineeOptions {
  std::filesystem::path folder;
  std::filesystem::path config;  // empty: the folder's config.json
  models::ModelOptions model;
  bool all_decay = false;         // weight decay on norms too
  std::filesystem::path adapter;  // adapters to begin with; empty: fresh ones
  std::unique_ptr<optim::Optimizer> optimizer = optim::make_adamw({});
  engine::EngineOptions engine;
  std::shared_ptr<comm::Communicator> comm = comm::make_local_communicator();
};

[[nodiscard]] Trainee make_trainee(TraineeOptions options);

// Logits of all positions.
[[nodiscard]] at::Tensor logits(engine::Engine& engine, const at::Tensor& ids_BT);

// One window of the given micro-batches; the last report.
engine::StepReport train_window(engine::Engine& engine,
                                const std::vector<models::TokenBatch>& micro_batches);

[[nodiscard]] arithmetic::Schedule constant_rate(double rate);

}  // namespace zeroth::parity
