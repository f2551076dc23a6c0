#include <cmath>

#include "e2e/checkpoints.h"
#include <fmt/format.h>
#include <unistd.h>

// Cases of other tools' users that speak of checkpoints, by their ids.
namespace zeroth::e2e {
namespace {

namespace fs = std::filesystem;

const Words kFull{"--finetuning_type", "full", "--bf16"};

class Case : public Checkpoints {
 protected:
  [[nodiscard]] std::uintmax_t bytes_of(const std::string& folder, const std::string& part) const {
    std::uintmax_t bytes = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(path(folder))) {
      const std::string name = entry.path().filename().string();
      if (name.find(part) != std::string::npos && name.ends_with(".safetensors")) {
        bytes += entry.file_size();
      }
    }
    return bytes;
  }

  [[nodiscard]] std::vector<std::string> tensors_in(const std::string& file) const {
    std::vector<std::string> names;
    const std::string content = content_of(path(file));
    const auto length = *reinterpret_cast<const std::uint64_t*>(content.data());
    const Json header = Json::parse(content.substr(8, length));
    for (const auto& entry : header.items()) {
      names.push_back(entry.key());
    }
    return names;
  }

  [[nodiscard]] bool holds(const std::string& file, const std::string& tensor) const {
    const auto names = tensors_in(file);
    return std::find(names.begin(), names.end(), tensor) != names.end();
  }

  [[nodiscard]] Json config_in(const std::string& folder) const {
    return Json::parse(content_of(path(folder + "/config.json")));
  }
};

TEST_F(Case, K05_K22_ATiedHeadIsOneTensorAndAnUntiedOneIsTwo) {
  make_model("untied", {.tied = false});
  for (const std::string stage : {"2", "3"}) {
    const Words sharded = joined(
        kFull, {"--ranks", "2", "--zero_stage", stage, "--per_device_train_batch_size", "1"});
    (void)good(long_run("tied" + stage, sharded));
    (void)good(long_run("untied" + stage, joined(sharded, {"--model_name_or_path", "untied"})));
    for (const std::string& folder : {"tied" + stage, "tied" + stage + "/checkpoint-12"}) {
      EXPECT_TRUE(holds(folder + "/model.safetensors", "model.embed_tokens.weight"));
      EXPECT_FALSE(holds(folder + "/model.safetensors", "lm_head.weight"));
      EXPECT_EQ(config_in(folder).at("tie_word_embeddings"), true);
    }
    EXPECT_TRUE(holds("untied" + stage + "/model.safetensors", "model.embed_tokens.weight"));
    EXPECT_TRUE(holds("untied" + stage + "/model.safetensors", "lm_head.weight"));
    EXPECT_EQ(config_in("untied" + stage).at("tie_word_embeddings"), false);
  }
}

TEST_F(Case, K10_AMissingOptimizerFileIsNamedWithAllThatIsExpectedAndFound) {
  const Words ranks{"--ranks", "2", "--zero_stage", "2", "--per_device_train_batch_size", "1"};
  (void)good(long_run("out", ranks));
  fs::remove(path("out/checkpoint-12/state-00001-of-00002.safetensors"));
  refused(long_run("out", joined(ranks, {"--resume", "out/checkpoint-12"})),
          4,
          {"state-00001-of-00002.safetensors is missing",
           "expected ",
           "found ",
           "--adapter_name_or_path"});
  // By request: a new run from the weights.
  (void)good(long_run("new", joined(ranks, {"--adapter_name_or_path", "out/checkpoint-12"})));
}

TEST_F(Case, K12_NoLatestIsAnErrorThatTellsWhatThereIs) {
  (void)good(long_run("out"));
  fs::remove(path("out/latest"));
  refused(long_run("out", {"--resume_from_checkpoint", "latest"}),
          4,
          {"no \"latest\" in out",
           "found: checkpoint-4, checkpoint-8, checkpoint-12",
           "--resume_from_checkpoint out/checkpoint-12"});
  refused(long_run("empty", {"--resume_from_checkpoint", "true"}),
          4,
          {"no \"latest\" in empty", "found: no checkpoint", "auto to start at update 0"});
  fs::create_directory(path("out/latest"));
  refused(long_run("out", {"--resume", "latest"}), 4, {"latest is a folder", "Remove it"});
  fs::remove(path("out/latest"));
  write("out/latest", "checkpoint-99\n");
  refused(
      long_run("out", {"--resume", "latest"}),
      4,
      {"names checkpoint-99, which is not there", "--resume_from_checkpoint out/checkpoint-12"});
  const auto other = good(long_run("out", {"--resume_from_checkpoint", "auto"}));
  EXPECT_NE(other.errors.find("out/latest names checkpoint-99, which is not there"),
            std::string::npos)
      << other.errors;
  const auto outcome = good(long_run("new", {"--resume_from_checkpoint", "auto"}));
  EXPECT_NE(outcome.errors.find("no checkpoint in new to go on from: starting at update 0"),
            std::string::npos)
      << outcome.errors;
}

TEST_F(Case, K13_AHalfWrittenCheckpointIsPassedOver) {
  testing::Invocation killed = invocation(long_run("out"));
  killed.environment.emplace_back("ZEROTH_TEST_STOP_AT=0:checkpoint of update 8");
  const testing::Outcome death = testing::run(killed);
  EXPECT_EQ(death.exit_code, 6);
  EXPECT_TRUE(
      death.errors.ends_with("out/checkpoint-4 is complete: the same command with "
                             "--resume_from_checkpoint latest goes on from it\n"))
      << death.errors;
  fs::create_directory(path("out/checkpoint-8.partial"));  // as far as it came
  write("out/checkpoint-12/adapter_config.json", "{}");    // somebody's copy that broke off
  const auto outcome = good(long_run("out", {"--resume", "latest"}));
  EXPECT_NE(outcome.errors.find("checkpoint-8.partial is passed over: incomplete"),
            std::string::npos)
      << outcome.errors;
  EXPECT_NE(outcome.errors.find("checkpoint-12 is passed over: incomplete"), std::string::npos);
  EXPECT_NE(outcome.errors.find("going on from out/checkpoint-4 "), std::string::npos);
  EXPECT_FALSE(has("out/checkpoint-8.partial"));
  (void)good(long_run("whole"));
  EXPECT_TRUE(weights_in("out") == weights_in("whole"));
  fs::remove(path("out/checkpoint-8/checkpoint.json"));
  refused(long_run("out", {"--resume", "out/checkpoint-8"}), 4, {"checkpoint.json is missing"});
}

// Rank 1 sees another disk under the same name: rank 0 decides, and what cannot follow is named.
TEST_F(Case, K16_RanksGoOnFromOneCheckpoint) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root";
  }
  const Words ranks{"--zero_stage", "2", "--per_device_train_batch_size", "1"};
  (void)good(long_run("out", joined(ranks, {"--ranks", "2"})));
  fs::copy(path("out"), path("other"), fs::copy_options::recursive);
  cut_back_to("out", 8);
  cut_back_to("other", 4);
  std::vector<pid_t> started;
  for (int rank = 0; rank < 2; ++rank) {
    testing::Invocation run = invocation(long_run("out", joined(ranks, {"--resume", "latest"})));
    run.environment = {"WORLD_SIZE=2",
                       fmt::format("RANK={}", rank),
                       fmt::format("LOCAL_RANK={}", rank),
                       "LOCAL_WORLD_SIZE=2",
                       "MASTER_ADDR=localhost",
                       fmt::format("MASTER_PORT={}", ::getpid())};
    if (rank == 1) {
      run.arguments = joined({"/usr/bin/unshare",
                              "-m",
                              "/bin/sh",
                              "-c",
                              "mount --bind other out && exec \"$@\"",
                              "sh"},
                             run.arguments);
    }
    const std::string name = fmt::format("rank{}", rank);
    started.push_back(testing::start(run, path(name + ".out"), path(name + ".err")));
  }
  EXPECT_EQ(testing::wait_for(started[1]), 4);
  EXPECT_NE(testing::wait_for(started[0]), 0);
  const std::string said = content_of(path("rank1.err"));
  EXPECT_NE(said.find("cannot read the checkpoint out/checkpoint-8 that rank 0 chose"),
            std::string::npos)
      << said;
  EXPECT_NE(content_of(path("rank0.err")).find("rank 1"), std::string::npos);
}

TEST_F(Case, K17_TheRateGoesOnAndAnotherOneIsTold) {
  const Words schedule{"--learning_rate", "1e-3", "--warmup_steps", "3"};
  (void)good(long_run("whole", schedule));
  cut_back_to("whole", 8);
  (void)good(long_run("whole", joined(schedule, {"--resume", "latest"})));
  (void)good(long_run("uncut", schedule));
  const auto rates = records_of(path("whole"), "update");
  const auto reference = records_of(path("uncut"), "update");
  ASSERT_EQ(rates.size(), reference.size());
  for (std::size_t i = 0; i < rates.size(); ++i) {
    EXPECT_NEAR(rates[i].at("learning_rate").get<double>(),
                reference[i].at("learning_rate").get<double>(),
                1e-12);
  }
  cut_back_to("whole", 8);
  const Words changed{"--learning_rate", "5e-4", "--warmup_steps", "3", "--resume", "latest"};
  const auto outcome = good(long_run("whole", changed));
  EXPECT_NE(outcome.errors.find("learning_rate: checkpoint 0.001, now 0.0005 (command line)"),
            std::string::npos)
      << outcome.errors;
  EXPECT_NEAR(records_of(path("whole"), "update")[8].at("learning_rate").get<double>(),
              reference[8].at("learning_rate").get<double>() / 2,
              1e-12);
  cut_back_to("whole", 8);
  refused(long_run("whole", joined(changed, {"--strict"})), 2, {"learning_rate: checkpoint 0.001"});
}

TEST_F(Case, K19_AnAdapterGoesOnUponItsBase) {
  for (const std::string stage : {"0", "2", "3"}) {
    const Words ranks{"--ranks",
                      "2",
                      "--zero_stage",
                      stage,
                      "--per_device_train_batch_size",
                      "1",
                      "--overwrite_output_dir"};
    (void)good(long_run("whole", ranks));
    fs::remove_all(path("out"));
    fs::copy(path("whole"), path("out"), fs::copy_options::recursive);
    cut_back_to("out", 8);
    (void)good(long_run("out", joined(ranks, {"--resume", "latest"})));
    EXPECT_TRUE(weights_in("out") == weights_in("whole")) << stage;
  }
}

TEST_F(Case, K20_TheBestAdapterIsTheResult) {
  // What is learnt from the rows makes these ones less likely.
  write(
      "unlike.json",
      R"([{"instruction": "Qq", "output": "zxqj vkw zxqj vkw"}, {"instruction": "Jj", "output": "wvxq"}])");
  const Words best{"--eval_dataset",
                   "unlike.json",
                   "--eval_strategy",
                   "steps",
                   "--eval_steps",
                   "4",
                   "--load_best_model_at_end",
                   "--lr_scheduler_type",
                   "constant",
                   "--warmup_steps",
                   "0",
                   "--save_total_limit",
                   "1",
                   "--learning_rate",
                   "1e-2"};
  // An adapter alone learns little of it: it begins with a model that knows them.
  (void)good(long_run(
      "knows",
      {"--dataset", "unlike.json", "--finetuning_type", "full", "--learning_rate", "1e-2"}));
  const Words adapter{"--model_name_or_path", "knows"};
  const Words model{"--finetuning_type", "full"};
  for (const Words& more : {adapter,
                            joined(adapter, {"--save_only_model"}),
                            model,
                            joined(model, {"--save_only_model", "--bf16"})}) {
    const Json run =
        json_of(long_run("out", joined(best, joined(more, {"--overwrite_output_dir"}))));
    double least = INFINITY;
    int update = 0;
    for (const Json& record : records_of(path("out"), "evaluation")) {
      if (record.at("loss").get<double>() < least) {
        least = record.at("loss").get<double>();
        update = record.at("step");
      }
    }
    EXPECT_LT(update, 12);  // or this test says nothing
    EXPECT_FALSE(weights_in("out") == weights_in("out/checkpoint-12"));
    EXPECT_EQ(run.at("best_update"), update);
    EXPECT_TRUE(weights_in("out") == weights_in(fmt::format("out/checkpoint-{}", update)));
    const Json state = Json::parse(content_of(path("out/trainer_state.json")));
    EXPECT_EQ(state.at("best_model_checkpoint"), fmt::format("out/checkpoint-{}", update));
    EXPECT_DOUBLE_EQ(state.at("best_metric").get<double>(), least);
  }
}

TEST_F(Case, K21_FilesAreAsLargeAsTheirNumbers) {
  const Json run = json_of(long_run(
      "out",
      joined(kFull, {"--ranks", "4", "--zero_stage", "2", "--per_device_train_batch_size", "1"})));
  EXPECT_EQ(run.at("updates"), 12);
  make_large_model();
  (void)good(train("large_out",
                   joined(kFull,
                          {"--model_name_or_path",
                           "large",
                           "--ranks",
                           "4",
                           "--zero_stage",
                           "2",
                           "--max_steps",
                           "1",
                           "--per_device_train_batch_size",
                           "1"})));
  const double numbers = static_cast<double>(bytes_of("large", "model")) / 4;
  const double result = static_cast<double>(bytes_of("large_out/checkpoint-1", "model"));
  const double state = static_cast<double>(bytes_of("large_out/checkpoint-1", "state-"));
  EXPECT_LE(result, 2 * numbers * 1.01);
  EXPECT_LE(state, 12 * numbers * 1.01);
  EXPECT_GE(state, 12 * numbers * 0.99);
}

TEST_F(Case, K25_AResultHasTheTypeThatWasComputedIn) {
  (void)good(long_run("out", kFull));
  EXPECT_EQ(config_in("out").at("torch_dtype"), "bfloat16");
  EXPECT_EQ(config_in("out/checkpoint-12").at("torch_dtype"), "bfloat16");
  const double half = static_cast<double>(bytes_of("out", "model"));
  (void)good(long_run("wide", {"--finetuning_type", "full"}));
  EXPECT_EQ(config_in("wide").at("torch_dtype"), "float32");
  EXPECT_NEAR(static_cast<double>(bytes_of("wide", "model")) / half, 2, 0.2);
}

TEST_F(Case, K27_AnAdaptersCheckpointHoldsNoBase) {
  make_large_model();
  (void)good(train("out",
                   {"--model_name_or_path",
                    "large",
                    "--ranks",
                    "2",
                    "--zero_stage",
                    "3",
                    "--max_steps",
                    "1",
                    "--per_device_train_batch_size",
                    "1"}));
  const double adapter = static_cast<double>(bytes_of("out", "adapter"));
  const double all = static_cast<double>(bytes_of("out/checkpoint-1", ""));
  EXPECT_LT(all, 3.1 * adapter);  // fp32 weights and two moments
  const Json manifest = Json::parse(content_of(path("out/checkpoint-1/checkpoint.json")));
  EXPECT_EQ(manifest.at("settings").at("model_name_or_path"), "large");
  EXPECT_EQ(manifest.at("model_fingerprint").get<std::string>().size(), 16U);
}

}  // namespace
}  // namespace zeroth::e2e
