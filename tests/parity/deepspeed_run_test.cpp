#include <fstream>

#include "base/file.h"
#include "base/json.h"
#include "config/resolve.h"
#include "config/schedule_rules.h"
#include "parity/runs.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>

// A run of DeepSpeed itself, from its own ds_config.json: the settings go the product's way, and
// two ranks (threads here) then take the same steps over the same rows.
namespace zeroth::parity {
namespace {

constexpr int kRanks = 2;

std::filesystem::path reference(const std::string& name) {
  return shared_data() / "reference/deepspeed" / name;
}

Json trace_of(int stage) {
  const std::string name = "stage" + std::to_string(stage) + "-trace.json";
  return parse_json(read_file(reference(name), ErrorKind::kData), name, ErrorKind::kData);
}

// What `zeroth train` makes of DeepSpeed's file under a launcher of two ranks.
config::RunConfig resolved(const Json& deepspeed, int stage) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) /
                                     ("zeroth_ds_stage" + std::to_string(stage) + ".json");
  std::ofstream(file) << deepspeed.dump(1);
  const std::vector<std::string> arguments{"--deepspeed",
                                           file.string(),
                                           "--model_name_or_path",
                                           "model",
                                           "--dataset",
                                           "rows.json",
                                           "--output_dir",
                                           "out",
                                           "--finetuning_type",
                                           "full",
                                           "--max_steps",
                                           "8"};
  const config::Environment launcher{{"RANK", "0"},
                                     {"LOCAL_RANK", "0"},
                                     {"WORLD_SIZE", std::to_string(kRanks)},
                                     {"LOCAL_WORLD_SIZE", std::to_string(kRanks)},
                                     {"MASTER_ADDR", "127.0.0.1"},
                                     {"MASTER_PORT", "29500"}};
  return config::resolve(config::Command::kTrain, arguments, launcher);
}

Trainee trainee_of(const config::RunConfig& config, std::shared_ptr<comm::Communicator> comm) {
  const config::OptimizerSettings& optimizer = config.optimizer;
  TraineeOptions options{.folder = shared_data() / "models/stories260K-hf"};
  options.all_decay = true;  // DeepSpeed's one group of parameters
  options.optimizer = optim::make_adamw({.beta1 = optimizer.beta1,
                                         .beta2 = optimizer.beta2,
                                         .epsilon = optimizer.epsilon,
                                         .weight_decay = optimizer.weight_decay});
  options.engine = {.zero_stage = static_cast<int>(config.zero.stage),
                    .tuning = {.reduce_bucket_elements = config.zero.reduce_bucket_elements},
                    .accumulation_steps = config.batch.accumulation,
                    .max_grad_norm = optimizer.max_grad_norm,
                    .schedule = config::schedule_of(config, config.schedule.max_steps)};
  options.comm = std::move(comm);
  return make_trainee(std::move(options));
}

struct Outcome {
  std::vector<engine::StepReport> reports;
  std::map<std::string, at::Tensor> weights;
};

// ids [update, micro-step, rank, row, token]; labels are the ids themselves.
Outcome run_rank(const config::RunConfig& config, std::shared_ptr<comm::Communicator> comm) {
  const std::int64_t rank = comm->rank();
  Trainee trainee = trainee_of(config, std::move(comm));
  const formats::SafetensorsFile rows(reference("ids.safetensors"));
  const at::Tensor ids = tensor(rows, "ids");
  Outcome outcome;
  for (std::int64_t update = 0; update < ids.size(0); ++update) {
    std::vector<models::TokenBatch> micro_steps;
    for (std::int64_t micro = 0; micro < ids.size(1); ++micro) {
      const at::Tensor own = ids[update][micro][rank].contiguous();
      micro_steps.push_back(batch_of(own, own));
    }
    outcome.reports.push_back(train_window(*trainee.engine, micro_steps));
  }
  for (const auto& unit : trainee.model.units) {
    for (const models::Parameter& parameter : unit->parameters()) {
      outcome.weights[parameter.name] = trainee.engine->parameter_value(parameter.name);
    }
  }
  return outcome;
}

Outcome run(const config::RunConfig& config) {
  Outcome first;
  on_threads(kRanks, [&](const std::shared_ptr<comm::Communicator>& comm) {
    Outcome outcome = run_rank(config, comm);
    if (comm->rank() == 0) {
      first = std::move(outcome);
    }
  });
  return first;
}

class DeepSpeedRun : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(shared_data())) {
      GTEST_SKIP() << "needs ../shared/data";
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Stages, DeepSpeedRun, testing::Values(1, 2, 3), [](const auto& test) {
  return "stage" + std::to_string(test.param);
});

TEST_P(DeepSpeedRun, TheTraceAndTheWeightsComeOutTheSame) {
  const Json trace = trace_of(GetParam());
  const config::RunConfig config = resolved(trace["config"], GetParam());
  ASSERT_EQ(config.zero.stage, GetParam());
  const Outcome outcome = run(config);
  ASSERT_EQ(outcome.reports.size(), trace["trace"].size());
  for (std::size_t update = 0; update < outcome.reports.size(); ++update) {
    SCOPED_TRACE("update " + std::to_string(update + 1));
    const engine::StepReport& report = outcome.reports[update];
    const Json& expected = trace["trace"][update];
    EXPECT_NEAR(report.loss.mean() / expected["loss"].get<double>(), 1.0, 1e-5);
    EXPECT_NEAR(report.grad_norm / expected["grad_norm"].get<double>(), 1.0, 1e-5);
    EXPECT_EQ(report.learning_rate, expected["lr_used"].get<double>());
  }
  const formats::SafetensorsFile after(
      reference("stage" + std::to_string(GetParam()) + "-after8.safetensors"));
  ASSERT_EQ(outcome.weights.size(), after.tensors().size());
  for (const auto& [name, view] : after.tensors()) {
    EXPECT_LT(relative_norm(outcome.weights.at(name), tensor(after, name)), 1e-5) << name;
  }
}

}  // namespace
}  // namespace zeroth::parity
