// Published symptoms of optimizers, learning-rate schedules and the length of a run.
#include <cmath>

#include "config/case_support.h"
#include "config/schedule_rules.h"

namespace zeroth::config {
namespace {

constexpr auto kWarmup = R"({"scheduler": {"type": "WarmupLR", "params": {
  "warmup_min_lr": 0,
  "warmup_num_steps": 10}}})";

TEST_F(Case, C23_TheCommandLinesScheduleReplacesTheWholeBlock) {
  const Arguments cosine{"--lr_scheduler_type", "cosine", "--max_steps", "100"};
  const Verdict verdict = check_json(kWarmup, cosine);
  EXPECT_TRUE(verdict.accepted()) << verdict.messages();
  EXPECT_TRUE(has(verdict.table(),
                  "lr_scheduler_type cosine (command line, overrides ds.json:1: WarmupLR)"))
      << verdict.table();
  EXPECT_EQ(verdict.value("warmup_steps"), 0);
  const std::string why =
      "lr_scheduler_type cosine (command line) replaces the whole scheduler "
      "block";
  EXPECT_EQ(verdict.idle("scheduler.params.warmup_num_steps"), why);
  EXPECT_EQ(verdict.idle("scheduler.params.warmup_min_lr"), why);
  EXPECT_EQ(verdict.outcome("scheduler.params.warmup_num_steps"), "overridden: " + why);
  EXPECT_EQ(verdict.outcome("scheduler.type"), "overridden: command line");
  const std::string rates = rates_line(schedule_of(verdict.all.config, 100), 100);
  for (const char* place : {"first", "warm-up", "middle", "last"}) {
    EXPECT_TRUE(has(rates, place)) << rates;
  }

  Arguments strict = cosine;
  strict.emplace_back("--strict");
  const Verdict refused = check_json(kWarmup, strict);
  EXPECT_TRUE(
      refused.says("lr_scheduler_type cosine (command line) overrides WarmupLR (ds.json:1)"))
      << refused.messages();
  EXPECT_TRUE(refused.says("scheduler.params.warmup_num_steps 10 has no effect"))
      << refused.messages();
}

TEST_F(Case, C23_TheCommandLinesOwnWarmupIsKept) {
  const Verdict verdict =
      check_json(kWarmup, {"--lr_scheduler_type", "cosine", "--warmup_steps", "3"});
  EXPECT_EQ(verdict.value("warmup_steps"), 3);
  EXPECT_EQ(verdict.source("warmup_steps"), "command line");
  EXPECT_TRUE(verdict.setting("warmup_steps").overrides.empty());
}

TEST_F(Case, C23_OneSourceAloneIsInForce) {
  const Verdict json = check_json(kWarmup);
  EXPECT_EQ(json.value("lr_scheduler_type"), "WarmupLR");
  EXPECT_EQ(json.value("warmup_steps"), 10);
  const Verdict same = check_json(kWarmup, {"--lr_scheduler_type", "WarmupLR"});
  EXPECT_EQ(same.value("warmup_steps"), 10) << same.table();
  const Verdict line = check({"--lr_scheduler_type", "cosine"});
  EXPECT_EQ(line.value("lr_scheduler_type"), "cosine");
}

TEST_F(Case, C32_MaxGradNormIsInForceAndShown) {
  const Verdict line = check({"--max_grad_norm", "1e-9", "--optim", "sgd", "--learning_rate", "1"});
  EXPECT_EQ(line.all.config.optimizer.max_grad_norm, 1e-9);
  EXPECT_TRUE(has(line.table(), "max_grad_norm 1e-09 (command line)")) << line.table();
  const Verdict json = check_json(R"({"gradient_clipping": 0.5})");
  EXPECT_EQ(json.setting("max_grad_norm").spelled, "gradient_clipping");
  EXPECT_EQ(json.source("max_grad_norm"), "ds.json:1");
  EXPECT_EQ(json.all.config.optimizer.max_grad_norm, 0.5);
  const Verdict neither = check({});
  EXPECT_TRUE(has(neither.table(), "max_grad_norm 1 (default)")) << neither.table();
}

std::string offloaded(const std::string& optimizer) {
  return R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}},
  "zero_force_ds_cpu_optimizer": false,
  "optimizer": {"type": ")" +
         optimizer + R"(", "params": {"lr": 1e-3}}})";
}

TEST_F(Case, C41_AnOptimizerThatTheProcessorCannotDoIsRefusedWithTheOnesThatItCan) {
  const Verdict verdict = check_json(offloaded("Lamb"), {"--world_size", "2"});
  EXPECT_TRUE(
      verdict.says("optimizer.type Lamb (ds.json:3) with "
                   "zero_optimization.offload_optimizer.device cpu (ds.json:1)"))
      << verdict.messages();
  EXPECT_TRUE(verdict.says("AdamW, Adam, SGD, Adagrad and Lion")) << verdict.messages();
}

TEST_F(Case, C41_OptimizersOfTheProcessorAreAccepted) {
  for (const char* built : {"AdamW", "Adam", "SGD", "Adagrad", "Lion"}) {
    const Verdict verdict = check_json(offloaded(built), {"--world_size", "2"});
    EXPECT_TRUE(verdict.accepted()) << built << verdict.messages();
    EXPECT_EQ(verdict.planned("optim"), "") << built;
    EXPECT_TRUE(has(verdict.idle("zero_force_ds_cpu_optimizer"), "host memory")) << built;
  }
}

TEST_F(Case, C41_ARefusedOptimizerIsNamedAsTheFileSpellsIt) {
  const Verdict verdict = check_json(R"({"optimizer": {"type": "OneBitAdam"}})");
  EXPECT_TRUE(verdict.says("ds.json:1: optimizer.type OneBitAdam: not supported"))
      << verdict.messages();
  EXPECT_EQ(verdict.of_kind(ProblemKind::kRefused).size(), 1U);
}

std::string warmup_of(const std::string& updates) {
  return R"({"optimizer": {"type": "AdamW", "params": {"lr": 1e-3}},
  "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": )" +
         updates + "}}}";
}

TEST_F(Case, C44_AWarmupOfNoUpdatesIsRefused) {
  for (const char* updates : {"0", "-3"}) {
    const Verdict verdict = check_json(warmup_of(updates));
    EXPECT_TRUE(verdict.says("warmup_num_steps must be")) << updates << verdict.messages();
    EXPECT_TRUE(verdict.says("ds.json:2")) << verdict.messages();
    EXPECT_EQ(verdict.of_kind(ProblemKind::kRange).size(), 1U) << verdict.messages();
  }
  EXPECT_TRUE(check_json(warmup_of("0")).says("must be a positive integer"));
}

TEST_F(Case, C44_AWarmupOfOneUpdateIsFinite) {
  const Verdict verdict = check_json(warmup_of("1"));
  EXPECT_TRUE(verdict.accepted()) << verdict.messages();
  const arithmetic::Schedule schedule = schedule_of(verdict.all.config, 6);
  EXPECT_EQ(schedule.at(0), 0);
  EXPECT_EQ(schedule.at(1), 0);  // DeepSpeed counts from -1: updates 1 and 2 are at the minimum
  for (std::int64_t update = 2; update < 6; ++update) {
    EXPECT_DOUBLE_EQ(schedule.at(update), 1e-3) << update;
    EXPECT_TRUE(std::isfinite(schedule.at(update)));
  }
}

TEST_F(Case, C47_MaxStepsBeatsEpochsAndBothAreShown) {
  const auto with = [](const char* epochs, const char* steps) {
    return check({"--num_train_epochs",
                  epochs,
                  "--max_steps",
                  steps,
                  "--train_batch_size",
                  "10",
                  "--per_device_train_batch_size",
                  "10"});
  };
  const Verdict fewer = with("2", "5");
  EXPECT_TRUE(fewer.accepted()) << fewer.messages();
  EXPECT_EQ(fewer.value("max_steps"), 5);
  EXPECT_TRUE(has(fewer.idle("num_train_epochs"), "training stops at update 5 (command line)"))
      << fewer.idle("num_train_epochs");
  EXPECT_TRUE(has(fewer.table(), "num_train_epochs 2: max_steps is given and decides"))
      << fewer.table();
  // With the rows counted, what the epochs would have been.
  EXPECT_EQ(outlook_of(fewer.all.config, 100).total_updates, 5);
  EXPECT_EQ(outlook_of(with("1", "50").all.config, 100).total_updates, 50);
}

}  // namespace
}  // namespace zeroth::config
