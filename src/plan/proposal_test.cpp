#include "plan/proposal.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "config/resolve.h"
#include "config/schema.h"
#include "plan/input.h"
#include "plan/test_support.h"
#include <gtest/gtest.h>
#include <unistd.h>

namespace zeroth::plan {
namespace {

constexpr std::int64_t kGi = std::int64_t{1} << 30;

// All weights of LLaMA-3-8B on 64 devices: 18 bytes a parameter are 135 GiB.
PlanInput input() {
  PlanInput input = on_ranks(input_for(kLlama3), 64, 0);
  input.own_memory = true;
  input.row_tokens = 1024;
  input.micro_batch_rows = 2;
  input.accumulation = 6;
  return input;
}

Plan plan_with(std::int64_t gib) {
  return make_plan(input(), {.device = Bytes(gib * kGi), .host = std::nullopt, .disk = {}});
}

TEST(Proposal, TakesTheLeastShardingThatHoldsTheMicroBatch) {
  EXPECT_EQ(least_that_fits(plan_with(400))->stage, 0);
  EXPECT_EQ(least_that_fits(plan_with(80))->stage, 1);
  EXPECT_EQ(least_that_fits(plan_with(50))->stage, 2);
  EXPECT_EQ(least_that_fits(plan_with(30))->stage, 3);
  EXPECT_EQ(least_that_fits(plan_with(80))->micro_batch_rows, 2);
}

TEST(Proposal, KeepsTheGlobalBatchWhereOnlyAPartOfTheMicroBatchFits) {
  const auto fewer = least_that_fits(plan_with(19));
  ASSERT_TRUE(fewer.has_value());
  EXPECT_EQ(fewer->micro_batch_rows, 1);
  EXPECT_EQ(fewer->accumulation, 12);
  EXPECT_EQ(fewer->stage, 3);
  EXPECT_LE(fewer->needed, Bytes(19 * kGi));
}

// Two rows would fit, but three do not divide into twos.
TEST(Proposal, NeverChangesTheGlobalBatchToFillTheMemory) {
  PlanInput three = input();
  three.stage = 3;
  three.micro_batch_rows = 2;
  const Bytes of_two_rows = needs_of(three, size_of(three)).device.total();
  three.micro_batch_rows = 3;
  three.accumulation = 1;
  const Plan plan = make_plan(three, {.device = of_two_rows, .host = std::nullopt, .disk = {}});
  EXPECT_EQ(plan.chosen.largest_micro_batch, 2);
  EXPECT_EQ(least_that_fits(plan)->micro_batch_rows, 1);
  EXPECT_EQ(least_that_fits(plan)->accumulation, 3);
}

TEST(Proposal, IsNoneWhereNothingFits) {
  const Plan plan = plan_with(5);
  EXPECT_FALSE(least_that_fits(plan).has_value());
  EXPECT_GT(least_needed(plan), Bytes(5 * kGi));
}

config::Resolution checked(const ProposalFile& proposal, const std::string& ranks) {
  const auto file = std::filesystem::temp_directory_path() /
                    ("zeroth_proposal_" + std::to_string(::getpid()) + ".json");
  write_file_atomically(file, proposal.text);
  std::vector<std::string> arguments{
      "--deepspeed", file.string(), "--world_size", ranks, "--strict"};
  arguments.insert(arguments.end(), proposal.words.begin(), proposal.words.end());
  config::Resolution resolution = config::resolve_all(config::Command::kCheck, arguments, {});
  std::filesystem::remove(file);
  return resolution;
}

TEST(Proposal, ItsFileIsReadBackWithoutAComplaint) {
  config::RunConfig config;
  config.optimizer.max_grad_norm = 0.5;
  for (const std::int64_t gib : {400, 80, 50, 30, 23}) {
    const Plan plan = plan_with(gib);
    const Proposal proposal = *least_that_fits(plan);
    const config::Resolution read = checked(ds_config(plan, proposal, config, "ds.json"), "64");
    EXPECT_TRUE(read.problems.empty()) << gib;
    EXPECT_EQ(read.config.zero.stage, proposal.stage);
    EXPECT_EQ(read.config.batch.micro_batch_rows, proposal.micro_batch_rows);
    EXPECT_EQ(read.config.global_rows(), 2 * 6 * 64);
    EXPECT_EQ(read.config.model.precision, config::Precision::kBf16);
    EXPECT_EQ(read.config.optimizer.max_grad_norm, 0.5);
  }
}

TEST(Proposal, OnAnotherNumberOfRanksItsFileIsRefused) {
  const Plan plan = plan_with(80);
  const ProposalFile file = ds_config(plan, *least_that_fits(plan), {}, "ds.json");
  EXPECT_FALSE(checked(file, "32").problems.empty());
}

TEST(Proposal, OfOneRankSaysNothingAboutSharding) {
  PlanInput alone = on_ranks(input(), 1, 0);
  const Plan plan =
      make_plan(alone, {.device = Bytes(400 * kGi), .host = std::nullopt, .disk = {}});
  const ProposalFile file = ds_config(plan, *least_that_fits(plan), {}, "ds.json");
  EXPECT_EQ(file.text.find("zero_optimization"), std::string::npos);
  EXPECT_TRUE(checked(file, "1").problems.empty());
}

using Words = std::vector<std::string>;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A run of LLaMA-3-8B as the command line asks for it, its proposal as a file, and the file read
// back.
struct RoundTrip {
  config::RunConfig asked;
  Proposal proposal;
  ProposalFile file;
  config::Resolution read;

  [[nodiscard]] Json value(const std::string& key) const {
    for (const config::SettingInForce& setting : read.config.settings) {
      if (setting.key == key) {
        return setting.value;
      }
    }
    return "without effect";
  }

  // The plan of the file must be the plan that the file was written from.
  [[nodiscard]] Bytes needed_by_the_file() const {
    config::RunConfig config = read.config;
    config.plan = asked.plan;
    const PlanInput input = input_of(config, model_of(kLlama3));
    return needs_of(input, size_of(input)).device.total();
  }
};

std::optional<RoundTrip> round_trip(const Words& words, std::int64_t gib = 80) {
  Words arguments{"--device_memory=80GiB", "--ranks=4"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  const auto asked = config::resolve_all(config::Command::kPlan, arguments, {});
  const config::GridInForce& grid = asked.config.grid;
  if (!asked.problems.empty() || grid.dp != grid.world_size) {
    return std::nullopt;
  }
  const Plan plan = make_plan(input_of(asked.config, model_of(kLlama3)),
                              {.device = Bytes(gib * kGi), .host = std::nullopt, .disk = {}});
  const auto proposal = least_that_fits(plan);
  EXPECT_TRUE(proposal.has_value());
  RoundTrip trip{.asked = asked.config,
                 .proposal = *proposal,
                 .file = ds_config(plan, *proposal, asked.config, "ds.json"),
                 .read = {}};
  trip.read = checked(trip.file, "4");
  return trip;
}

bool is_left_to_the_proposal(const std::string& key) {
  static const std::set<std::string> keys{"train_batch_size",
                                          "per_device_train_batch_size",
                                          "gradient_accumulation_steps",
                                          "ranks",
                                          "zero_stage",
                                          "deepspeed",
                                          "device_memory"};
  return keys.contains(key);
}

// Everything that was given is in force again, or is named.
void expect_nothing_lost(const RoundTrip& trip, const std::string& what) {
  EXPECT_EQ(trip.file.differences, Words{}) << what << "\n" << trip.file.text;
  EXPECT_TRUE(trip.read.problems.empty()) << what << "\n" << trip.file.text;
  EXPECT_EQ(trip.needed_by_the_file(), trip.proposal.needed) << what << "\n" << trip.file.text;
  for (const config::SettingInForce& setting : trip.asked.settings) {
    if (setting.given && !is_left_to_the_proposal(setting.key)) {
      EXPECT_TRUE(trip.value(setting.key) == setting.value ||
                  has(trip.file.text, "// Left out: " + setting.key + " "))
          << what << ": " << setting.key << "\n"
          << trip.file.text;
    }
  }
  for (const config::IdleSetting& idle : trip.asked.without_effect) {
    EXPECT_TRUE(has(trip.file.text, "// Left out: " + idle.as_written)) << what;
  }
}

RoundTrip kept(const Words& words, std::int64_t gib = 80) {
  const auto trip = round_trip(words, gib);
  EXPECT_TRUE(trip.has_value());
  expect_nothing_lost(*trip, words.front());
  return *trip;
}

constexpr auto kZ3 = R"({"train_batch_size": 32, "bf16": {"enabled": true},
  "optimizer": {"type": "Lion", "params": {"lr": 1e-3, "betas": [0.8, 0.95]}},
  "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 10}},
  "gradient_clipping": 0.3,
  "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 0, "overlap_comm": false,
    "sub_group_size": 5000, "offload_optimizer": {"device": "cpu"}},
  "data_types": {"grad_accum_dtype": "bf16"}})";

TEST(ProposalFile, TakesOverWhatItsSumsDependOn) {
  const RoundTrip trip =
      kept({"--deepspeed", kZ3, "--finetuning_type=full", "--cutoff_len=1024"}, 40);
  EXPECT_EQ(trip.proposal.stage, 3);
  EXPECT_EQ(trip.value("optim"), "lion");
  EXPECT_EQ(trip.value("learning_rate"), 1e-3);
  EXPECT_EQ(trip.value("adam_beta1"), 0.8);
  EXPECT_EQ(trip.value("adam_beta2"), 0.95);
  EXPECT_EQ(trip.value("lr_scheduler_type"), "WarmupLR");
  EXPECT_EQ(trip.value("warmup_steps"), 10);
  EXPECT_EQ(trip.value("data_types.grad_accum_dtype"), "bf16");
  EXPECT_EQ(trip.value("zero_optimization.overlap_comm"), false);
  EXPECT_EQ(trip.value("zero_optimization.stage3_prefetch_bucket_size"), 0);
  EXPECT_EQ(trip.value("zero_optimization.sub_group_size"), 5000);
  EXPECT_EQ(trip.value("finetuning_type"), "full");
  EXPECT_EQ(trip.value("cutoff_len"), 1024);
}

TEST(ProposalFile, TakesOverLossScaleAndTypes) {
  const RoundTrip trip = kept({"--deepspeed",
                               R"({"fp16": {"enabled": true, "loss_scale": 128},
                                   "communication_data_type": "fp16",
                                   "zero_optimization": {"stage": 2}})",
                               "--weight_decay=0.1"});
  EXPECT_EQ(trip.value("fp16.loss_scale"), 128.0);
  EXPECT_EQ(trip.value("communication_data_type"), "fp16");
  EXPECT_EQ(trip.value("weight_decay"), 0.1);
}

// What a ds_config.json has no key for is said by the command of the header.
TEST(ProposalFile, SaysTheRestAsOptionsOfItsCommand) {
  const RoundTrip trip = kept({"--finetuning_type=lora",
                               "--lora_rank=4",
                               "--lora_target=q_proj,v_proj",
                               "--packing=false",
                               "--lr_scheduler_type=cosine",
                               "--warmup_steps=7",
                               "--max_steps=-1"});
  EXPECT_TRUE(has(trip.file.text, "// Check it: zeroth check --deepspeed ds.json --world_size 4 "))
      << trip.file.text;
  EXPECT_TRUE(has(trip.file.text, " --lora_target q_proj,v_proj")) << trip.file.text;
  EXPECT_TRUE(has(trip.file.text, " --lr_scheduler_type cosine")) << trip.file.text;
  EXPECT_FALSE(has(trip.file.text, "\"scheduler\"")) << "DeepSpeed has no cosine";
  EXPECT_FALSE(has(trip.file.text, "device_memory"));
  EXPECT_FALSE(has(trip.file.text, "zeroth train")) << "no data is named";
}

TEST(ProposalFile, HasTheCommandThatTrainsWhereNothingIsMissing) {
  const RoundTrip trip =
      kept({"--model_name_or_path=my model", "--dataset=it's.jsonl", "--output_dir=out"});
  EXPECT_TRUE(has(trip.file.text, "// Train with it: zeroth train --deepspeed ds.json --ranks 4 "))
      << trip.file.text;
  EXPECT_TRUE(has(trip.file.text, "--model_name_or_path 'my model'")) << trip.file.text;
  EXPECT_TRUE(has(trip.file.text, R"(--dataset 'it'\''s.jsonl')")) << trip.file.text;
}

// DeepSpeed's word for each; a block without a type is none to it.
TEST(ProposalFile, NamesTheOptimizerInDeepSpeedsWords) {
  const std::vector<std::pair<Words, const char*>> cases{
      {{"--learning_rate=1e-4"}, "AdamW"},
      {{"--optim=adamw_torch_fused", "--adam_epsilon=1e-6"}, "AdamW"},
      {{"--optim=adam_l2", "--weight_decay=0.1"}, "Adam"},
      {{"--optim=sgd", "--optim_args=momentum=0.9,nesterov=true"}, "SGD"},
      {{"--optim=lion", "--adam_beta1=0.8"}, "Lion"},
      {{"--optim=adagrad", "--optim_args=lr_decay=0.01"}, "Adagrad"},
      {{"--optim=lamb", "--optim_args=max_coeff=5"}, "Lamb"}};
  for (const auto& [words, type] : cases) {
    const RoundTrip trip = kept(words);
    EXPECT_TRUE(has(trip.file.text, "\"type\": \"" + std::string(type) + "\"")) << trip.file.text;
    EXPECT_EQ(trip.read.config.optimizer, trip.asked.optimizer) << type;
  }
}

TEST(ProposalFile, KeepsAdamWithTheDecayInTheGradient) {
  for (const char* mode : {"true", "false"}) {
    const RoundTrip trip = kept({"--deepspeed",
                                 std::string(R"({"optimizer": {"type": "Adam", "params":
                                     {"lr": 1e-3, "torch_adam": true, "adam_w_mode": )") +
                                     mode + "}}}"});
    EXPECT_EQ(trip.read.config.optimizer, trip.asked.optimizer) << mode;
    EXPECT_TRUE(has(trip.file.text, "// Left out: optimizer.params.torch_adam true"));
  }
}

TEST(ProposalFile, KeepsEverySchedule) {
  for (const char* schedule : {"WarmupLR",
                               "WarmupDecayLR",
                               "WarmupCosineLR",
                               "OneCycle",
                               "LRRangeTest",
                               "linear",
                               "cosine",
                               "polynomial"}) {
    const RoundTrip trip =
        kept({std::string("--lr_scheduler_type=") + schedule, "--learning_rate=1e-4"});
    EXPECT_EQ(trip.read.config.schedule, trip.asked.schedule) << schedule;
  }
}

// A value that another filled is what the plan counts with.
TEST(ProposalFile, KeepsWhatAutoWasFilledWith) {
  const RoundTrip trip = kept({"--deepspeed",
                               R"({"optimizer": {"type": "AdamW", "params": {"lr": "auto"}},
                                   "scheduler": {"type": "WarmupDecayLR", "params":
                                     {"warmup_num_steps": "auto", "total_num_steps": "auto"}}})"});
  EXPECT_EQ(trip.value("learning_rate"), 5e-5);
  EXPECT_TRUE(has(trip.file.text, "\"total_num_steps\": \"auto\"")) << trip.file.text;
  EXPECT_EQ(trip.read.config.schedule, trip.asked.schedule);
}

// Keys of stage 3 say nothing at stage 0, and --strict would refuse them.
TEST(ProposalFile, NamesWhatItsOwnStageLeavesWithoutEffect) {
  const RoundTrip trip = kept({"--deepspeed", kZ3, "--finetuning_type=lora"}, 8000);
  EXPECT_EQ(trip.proposal.stage, 0);
  EXPECT_TRUE(has(trip.file.text,
                  "// Left out: zero_optimization.stage3_prefetch_bucket_size 0 (without effect "
                  "here: needs stage 3"))
      << trip.file.text;
}

// Where nothing fits into memory, the least offload does: state first, weights where they must.
TEST(Proposal, OffloadsToFilesWhereMemoryIsTooSmall) {
  PlanInput alone = input();
  alone.ranks = alone.ranks_per_node = 1;
  alone.lora.reset();
  const auto with = [&](std::int64_t gib) {
    return least_that_fits(
        make_plan(alone, {.device = Bytes(gib * kGi), .host = std::nullopt, .disk = {}}));
  };
  EXPECT_EQ(with(2000)->offload, Offload{});
  std::int64_t fewest = 2000;
  for (std::int64_t gib = 2000; gib > 0 && with(gib); gib -= 5) {
    EXPECT_LE(with(gib)->needed, Bytes(gib * kGi));
    fewest = gib;
  }
  EXPECT_EQ(with(fewest)->offload,
            (Offload{.optimizer = Place::kFiles, .parameters = Place::kFiles}));
  EXPECT_EQ(with(fewest)->stage, 3);
  EXPECT_LT(fewest, 60);  // where 8 billion parameters in 16 bits alone take 16 GB
}

TEST(ProposalFile, WritesWhatItOffloads) {
  const RoundTrip trip = kept({"--finetuning_type=full",
                               "--bf16",
                               "--cutoff_len=512",
                               "--zero_optimization.offload_param.device=nvme",
                               "--zero_optimization.offload_param.nvme_path=/scratch",
                               "--zero_stage=3"},
                              25);
  EXPECT_TRUE(trip.proposal.offload.uses_files());
  EXPECT_EQ(trip.value("zero_optimization.offload_optimizer.device"), "nvme");
  EXPECT_EQ(trip.value("zero_optimization.offload_optimizer.nvme_path"), "/scratch");
  EXPECT_EQ(trip.value("zero_stage"), trip.proposal.stage);
}

TEST(ProposalFile, NamesWhatIsPlannedAndWritesNoSecret) {
  const Plan plan = plan_with(80);
  config::RunConfig config;
  config.planned.push_back(
      {.key = "x", .value = "cpu", .source = "ds", .why = "later", .as_written = "device cpu"});
  const auto& schema = config::schema();
  const auto secret = std::find_if(
      schema.begin(), schema.end(), [](const config::Declaration& key) { return key.secret; });
  ASSERT_NE(secret, schema.end());
  config::SettingInForce token;
  token.key = secret->name;
  token.value = "hush";
  token.given = true;
  config.settings.push_back(token);
  const ProposalFile file = ds_config(plan, *least_that_fits(plan), config, "ds.json");
  EXPECT_TRUE(has(file.text, "// Left out: device cpu (planned)\n")) << file.text;
  EXPECT_TRUE(has(file.text, "// Left out: " + secret->name + " (a secret)\n")) << file.text;
  EXPECT_FALSE(has(file.text, "hush")) << file.text;
}

// No user's word ends a comment.
TEST(ProposalFile, IsReadWhateverItsNameIs) {
  const Plan plan = plan_with(80);
  const ProposalFile file = ds_config(plan, *least_that_fits(plan), {}, "a\n{\"zero\": 1} b.json");
  EXPECT_TRUE(has(file.text, R"(--deepspeed $'a\012{"zero": 1} b.json')")) << file.text;
  EXPECT_TRUE(checked(file, "64").problems.empty());
}

// A value that reading does not give back, such as a list's name with a comma, is told.
TEST(ProposalFile, TellsWhatItCouldNotKeep) {
  const Plan plan = plan_with(80);
  config::RunConfig config;
  config::SettingInForce names;
  names.key = "lora_target";
  names.value = Json::array({"one,two"});
  names.source = "recipe.yaml:3";
  names.given = true;
  config.settings.push_back(names);
  const ProposalFile file = ds_config(plan, *least_that_fits(plan), config, "ds.json");
  ASSERT_EQ(file.differences.size(), 1U);
  EXPECT_TRUE(has(file.differences.front(), "lora_target is one,two")) << file.differences.front();
  EXPECT_TRUE(has(file.text, "// Read back, this file differs from the plan: lora_target"));
}

// Published files, each as it stands.
TEST(ProposalFile, KeepsWhatPublishedFilesSay) {
  const std::filesystem::path folder =
      std::filesystem::path(ZEROTH_SOURCE_DIR) / "../shared/data/configs/deepspeed";
  if (!std::filesystem::is_directory(folder)) {
    GTEST_SKIP() << "needs ../shared/data";
  }
  int kept_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string file = entry.path().string();
    for (const char* type : {"--finetuning_type=full", "--finetuning_type=lora"}) {
      if (const auto trip = round_trip({"--deepspeed=" + file, type}, 2000)) {
        expect_nothing_lost(*trip, file);
        ++kept_files;
      }
    }
  }
  EXPECT_GT(kept_files, 50);
}

}  // namespace
}  // namespace zeroth::plan
