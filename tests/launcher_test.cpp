#include <csignal>
#include <functional>

#include "base/file.h"
#include "base/text.h"
#include "process.h"
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

// The front and a stand-in worker: a shell script that does what one test needs.
namespace zeroth::testing {
namespace {

namespace fs = std::filesystem;

constexpr auto kConfigJson =
    R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 16,
 "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 300,
 "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "hidden_act": "silu"})";

bool soon(const std::function<bool()>& condition) {
  for (int i = 0; i < 1000; ++i) {
    if (condition()) {
      return true;
    }
    ::usleep(10000);
  }
  return false;
}

// A file of tensors without bytes: the length of the header, in eight bytes, and the header.
std::string safetensors(const std::string& header) {
  return std::string(1, static_cast<char>(header.size())) + std::string(7, '\0') + header;
}

class Launcher : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(path("model"));
    write("model/config.json", kConfigJson);
    // A file without tensors: the front reads what files say of themselves, the worker their
    // weights.
    write("model/model.safetensors", safetensors("{}"));
    write("model/tokenizer.json", "{}");
    write("rows.json", "[]");
  }

  [[nodiscard]] fs::path path(const std::string& name) const { return folder_.path() / name; }

  void write(const std::string& name, const std::string& content) const {
    write_file_atomically(path(name), content);
  }

  void set_worker(const std::string& script) const {
    write("worker", "#!/bin/sh\ncd " + folder_.path().string() + "\n" + script);
    fs::permissions(path("worker"), fs::perms::owner_all);
  }

  [[nodiscard]] Invocation train(std::vector<std::string> more = {}) const {
    Invocation invocation{.arguments = {ZEROTH_PROGRAM,
                                        "train",
                                        "--model_name_or_path",
                                        "model",
                                        "--dataset",
                                        "rows.json",
                                        "--output_dir",
                                        "out",
                                        "--max_steps",
                                        "7"},
                          .input = "",
                          .environment = {"ZEROTH_WORKER=" + path("worker").string()},
                          .working_folder = folder_.path()};
    invocation.arguments.insert(invocation.arguments.end(), more.begin(), more.end());
    return invocation;
  }

  [[nodiscard]] pid_t start_train() const { return start(train(), path("stdout"), path("stderr")); }

  [[nodiscard]] std::string content(const std::string& name) const {
    return fs::exists(path(name)) ? read_file(path(name), ErrorKind::kDisk) : "";
  }

  [[nodiscard]] pid_t worker_pid() const {
    EXPECT_TRUE(soon([&] { return content("pid").ends_with("\n"); }));
    return static_cast<pid_t>(std::stol(content("pid")));
  }

  TemporaryFolder folder_;
};

TEST_F(Launcher, HandsTheConfigurationOnAndReturnsTheWorkersCode) {
  set_worker("echo $1\ncat <&$2 >config\nexit 3\n");
  const Outcome outcome = run(train());
  EXPECT_EQ(outcome.exit_code, 3) << outcome.errors;
  EXPECT_EQ(outcome.output, "--config-fd\n");
  EXPECT_NE(content("config").find("\"max_steps\":7"), std::string::npos) << content("config");
}

TEST_F(Launcher, ACrashIsNamedOnce) {
  set_worker("kill -SEGV $$\n");
  const Outcome outcome = run(train());
  EXPECT_EQ(outcome.exit_code, 70);
  EXPECT_NE(outcome.errors.find("signal 11"), std::string::npos) << outcome.errors;
}

TEST_F(Launcher, AKilledWorkerPointsAtMemory) {
  set_worker("kill -KILL $$\n");
  const Outcome outcome = run(train());
  EXPECT_EQ(outcome.exit_code, 6);
  EXPECT_NE(outcome.errors.find("killed by signal 9 (out of memory?)"), std::string::npos)
      << outcome.errors;
}

TEST_F(Launcher, AWorkerThatEndsWithoutAWordIsNamed) {
  set_worker("exit 1\n");
  const Outcome outcome = run(train());
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.errors, "internal error: the worker ended with code 1 and no word\n");
}

// The stand-in finds the descriptor of its status in $4; an activity is its first line, a failure
// lies behind its first page.
constexpr auto kFail =
    "fail() { printf '%s' \"$1\" | dd of=/proc/self/fd/$status bs=4096 seek=1 conv=notrunc "
    "2>/dev/null; }\nstatus=$4\nrank=$(sed 's/.*\"rank\":\\([0-9]*\\).*/\\1/' <&$2)\n";

TEST_F(Launcher, TheRanksFailureThatEndedTheRunIsToldLast) {
  set_worker(std::string(kFail) +
             "if [ $rank = 2 ]; then fail 'data error: row 17'; exit 3; fi\nsleep 0.3\n"
             "fail 'communication error: rank 2 failed\n  rank 0 waited for it'; exit 5\n");
  const Outcome outcome = run(train({"--ranks", "4"}));
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.errors,
            "ranks 0, 1 and 3 stopped: communication error: rank 2 failed\n"
            "rank 2: data error: row 17\n");
}

TEST_F(Launcher, ARankThatOnlyHeardOfAFailureIsNotItsCause) {
  set_worker(std::string(kFail) +
             "if [ $rank = 0 ]; then fail 'communication error: rank 1 is gone'; exit 5; fi\n"
             "sleep 0.3\nkill -KILL $$\n");
  const Outcome outcome = run(train({"--ranks", "2"}));
  EXPECT_EQ(outcome.exit_code, 6);
  EXPECT_LT(outcome.errors.find("rank 0 stopped: communication error: rank 1 is gone\n"),
            outcome.errors.find("memory error: rank 1 (process"))
      << outcome.errors;
}

TEST_F(Launcher, AnErrorThatAllRanksMeetIsToldOnce) {
  set_worker(std::string(kFail) + "fail 'data error: rows.json is empty'; exit 3\n");
  const Outcome outcome = run(train({"--ranks", "3"}));
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.errors, "data error: rows.json is empty\n");
}

TEST_F(Launcher, ARankThatDoesNotEndIsKilledSoon) {
  set_worker(std::string(kFail) +
             "if [ $rank = 1 ]; then fail 'data error: row 17'; exit 3; fi\nexec sleep 60\n");
  const Outcome outcome = run(train({"--ranks", "2"}));
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_LT(outcome.seconds, 5);
  EXPECT_EQ(outcome.errors,
            "rank 0 did not end by itself and was killed\nrank 1: data error: row 17\n");
}

TEST_F(Launcher, SignalsReachTheWorkerOnce) {
  set_worker(
      "trap 'echo t >>got' TERM\ntrap 'echo u >>got' USR1\necho $$ >pid\n"
      "while ! grep -q t got 2>/dev/null; do sleep 0.02; done\nsleep 0.5\nexit 143\n");
  const pid_t front = start_train();
  (void)worker_pid();
  ::kill(front, SIGUSR1);
  EXPECT_TRUE(soon([&] { return content("got") == "u\n"; }));
  ::kill(front, SIGTERM);
  ::usleep(20000);
  ::kill(front, SIGTERM);  // as timeout(1) does: to the process, and to its group
  EXPECT_EQ(wait_for(front), 143);
  EXPECT_EQ(content("got"), "u\nt\n");
}

TEST_F(Launcher, TheWorkerDiesWithTheFront) {
  set_worker("echo $$ >pid\nexec sleep 60\n");
  const pid_t front = start_train();
  const pid_t worker = worker_pid();
  ::kill(front, SIGKILL);
  EXPECT_EQ(wait_for(front), 128 + SIGKILL);
  EXPECT_TRUE(soon([&] {
    const std::string stat = fmt::format("/proc/{}/stat", worker);
    return !fs::exists(stat) || read_file(stat, ErrorKind::kDisk).find(") Z") != std::string::npos;
  }));
}

TEST_F(Launcher, AFolderInUseIsRefusedAndAnEndedRunsIsNot) {
  set_worker("echo $$ >pid\nwhile [ ! -e go ]; do sleep 0.02; done\n");
  const pid_t front = start_train();
  (void)worker_pid();
  const Outcome second = run(train());
  EXPECT_EQ(second.exit_code, 2);
  EXPECT_NE(
      second.errors.find(fmt::format("in use by a run that is still going (process {})", front)),
      std::string::npos)
      << second.errors;
  write("go", "");
  EXPECT_EQ(wait_for(front), 0);
  EXPECT_EQ(run(train()).exit_code, 0);
  EXPECT_TRUE(fs::is_empty(path("out")));
}

TEST_F(Launcher, ADeadRunsLockIsTakenOver) {
  fs::create_directories(path("out"));
  write("out/.zeroth.lock", "1\n");
  set_worker("exit 0\n");
  EXPECT_EQ(run(train()).exit_code, 0);
}

TEST_F(Launcher, ResultsAreReplacedOnlyWhenAsked) {
  fs::create_directories(path("out"));
  write("out/metrics.jsonl", "{}\n");
  set_worker("exit 0\n");
  const Outcome refused = run(train());
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.errors.find("metrics.jsonl"), std::string::npos) << refused.errors;
  EXPECT_EQ(run(train({"--overwrite_output_dir"})).exit_code, 0);
}

TEST_F(Launcher, TheModelsFolderIsNoOutputFolder) {
  set_worker("exit 0\n");
  const Outcome outcome = run(train({"--finetuning_type", "full"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  Invocation same = train();
  same.arguments[7] = "./model";
  const Outcome refused = run(same);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.errors.find("the folder that the run reads from"), std::string::npos)
      << refused.errors;
}

TEST_F(Launcher, AChatTemplateNeedsAPromptFormat) {
  set_worker("exit 0\n");
  write("model/tokenizer_config.json", R"({"chat_template": "{{ messages }}"})");
  EXPECT_EQ(run(train()).exit_code, 2);
  EXPECT_EQ(run(train({"--template", "alpaca"})).exit_code, 0);
  EXPECT_EQ(run(train({"--stage", "pt"})).exit_code, 0);
}

TEST_F(Launcher, MissingInputsHaveTheirOwnCodes) {
  set_worker("exit 0\n");
  fs::remove(path("rows.json"));
  EXPECT_EQ(run(train()).exit_code, 3);
  write("rows.json", "[]");
  fs::remove(path("model/model.safetensors"));
  EXPECT_EQ(run(train()).exit_code, 4);
  write("model/model.safetensors.index.json",
        R"({"weight_map": {"a": "model-00001-of-00001.safetensors"}})");
  EXPECT_EQ(run(train()).exit_code, 4);
  write("model/model-00001-of-00001.safetensors",
        safetensors(R"({"a": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}})"));
  EXPECT_EQ(run(train()).exit_code, 0);
  fs::remove(path("model/config.json"));
  EXPECT_EQ(run(train()).exit_code, 4);
}

}  // namespace
}  // namespace zeroth::testing
