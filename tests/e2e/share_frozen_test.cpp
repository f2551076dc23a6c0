#include <filesystem>

#include "e2e/ranks.h"
#include <fmt/format.h>
#include <unistd.h>

// Frozen weights through the product, with real processes: they are in memory once for all ranks,
// no number depends on it, and a model file that is cut under a run ends it with a message.
namespace zeroth::e2e {
namespace {

namespace fs = std::filesystem;

class ShareFrozen : public RankTest {
 protected:
  // What loading and training added to rank 0's process.
  [[nodiscard]] double bytes_gained(const Words& more) const {
    const Words common{"--model_name_or_path",
                       "large",
                       "--max_steps",
                       "1",
                       "--overwrite_output_dir",
                       "--lora_target",
                       "q_proj"};
    const Json memory =
        json_of(train("out", joined(joined(cut(2, 1, 1, 2), common), more))).at("memory");
    EXPECT_NEAR(memory.at("counted_bytes").get<double>(),
                memory.at("planned_bytes").get<double>(),
                0.1 * memory.at("planned_bytes").get<double>());
    return memory.at("process_bytes").get<double>() -
           memory.at("process_bytes_before_the_model").get<double>();
  }

  [[nodiscard]] Tensors adapter_with(const Words& more) const {
    (void)good(train("out", joined(more, {"--overwrite_output_dir"})));
    return tensors_of(path("out/adapter_model.safetensors"));
  }

  // Cuts the model's file while ranks train on it.
  void cut_under_ranks(int ranks) const {
    const std::string model = fmt::format("cut_under_{}", ranks);
    make_model(model);
    const pid_t front = testing::start(invocation(train("out",
                                                        joined(cut(ranks, 1, 1, 0),
                                                               {"--model_name_or_path",
                                                                model,
                                                                "--max_steps",
                                                                "1000000",
                                                                "--overwrite_output_dir"}))),
                                       path("stdout"),
                                       path("stderr"));
    EXPECT_TRUE(soon([&] { return content_of(path("out/metrics.jsonl")).ends_with("}\n"); }))
        << content_of(path("stderr"));
    fs::resize_file(path(model + "/model.safetensors"), 100);
    EXPECT_EQ(testing::wait_for(front), 6);
    const std::string said = content_of(path("stderr"));
    EXPECT_NE(said.find("disk error: " + path(model + "/model.safetensors").string() +
                        " was cut, or its disk failed, while the run read it"),
              std::string::npos)
        << said;
    EXPECT_EQ(said.find("died of signal"), std::string::npos) << said;
    fs::remove_all(path("out"));
  }
};

TEST_F(ShareFrozen, TheBaseIsInMemoryOnceForAllRanks) {
  make_large_model();
  constexpr double kParameters = 25.6e6;
  const Words plain{"--pack_weights",
                    "off"};  // packed ones are shared as well, and counted elsewhere
  for (const auto& [bytes, more] : {std::pair{4.0, plain}, {2.0, joined(plain, {"--bf16"})}}) {
    const double shared = bytes_gained(more);
    const double apart = bytes_gained(joined(more, {"--share_frozen", "false"}));
    const double saved = bytes * kParameters / 2;  // of two ranks, each has half
    EXPECT_NEAR(apart - shared, saved, 0.15 * saved + 4e6) << bytes << " bytes each";
  }
}

TEST_F(ShareFrozen, ChangesNoNumber) {
  make_model("narrow", {.bf16 = true});
  for (const Words& model : {Words{}, Words{"--model_name_or_path", "narrow"}}) {
    for (const Words& type : {Words{}, Words{"--bf16"}}) {
      const Words more = joined(joined(model, type), cut(2, 2, 1, 2));
      EXPECT_EQ(adapter_with(more), adapter_with(joined(more, {"--share_frozen", "false"})));
    }
  }
}

TEST_F(ShareFrozen, ServesEvaluationAndPrediction) {
  const auto answers = [&](const Words& more) {
    (void)good(joined({"predict",
                       "--model_name_or_path=model",
                       "--dataset=rows.json",
                       "--max_samples=4",
                       "--max_new_tokens=4",
                       "--output_dir=answers",
                       "--overwrite_output_dir",
                       "--ranks=2",
                       "--bf16"},
                      more));
    return content_of(path("answers/generated_predictions.jsonl"));
  };
  const auto loss = [&](const Words& more) {
    return json_of(joined({"eval",
                           "--model_name_or_path=model",
                           "--dataset=rows.json",
                           "--ranks=2",
                           "--bf16"},
                          more))
        .at("loss");
  };
  EXPECT_EQ(answers({}), answers({"--share_frozen=false"}));
  EXPECT_EQ(loss({}), loss({"--share_frozen=false"}));
}

TEST_F(ShareFrozen, StandsInTheStartTable) {
  const testing::Outcome outcome =
      good(train("out", {"--share_frozen", "false", "--max_steps", "1"}));
  EXPECT_NE(outcome.errors.find("share_frozen"), std::string::npos) << outcome.errors;
  const testing::Outcome full = good(
      train("full", {"--share_frozen", "false", "--max_steps", "1", "--finetuning_type", "full"}));
  EXPECT_NE(full.errors.find("no weights are frozen"), std::string::npos) << full.errors;
}

TEST_F(ShareFrozen, AModelFileThatIsCutEndsTheRunWithItsName) {
  cut_under_ranks(1);
  cut_under_ranks(2);
}

// A new file under the old name leaves the run with the file that it has read.
TEST_F(ShareFrozen, AModelFileThatIsReplacedLeavesTheRunAlone) {
  const Tensors expected = adapter_with({"--max_steps", "20"});
  fs::remove_all(path("out"));
  const pid_t front =
      testing::start(invocation(train("out", {"--max_steps", "20", "--overwrite_output_dir"})),
                     path("stdout"),
                     path("stderr"));
  EXPECT_TRUE(soon([&] { return content_of(path("out/metrics.jsonl")).ends_with("}\n"); }));
  write("model/model.safetensors", "another file");
  EXPECT_EQ(testing::wait_for(front), 0) << content_of(path("stderr"));
  EXPECT_EQ(tensors_of(path("out/adapter_model.safetensors")), expected);
}

}  // namespace
}  // namespace zeroth::e2e
