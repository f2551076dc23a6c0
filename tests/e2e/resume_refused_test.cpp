#include "e2e/checkpoints.h"
#include <fmt/format.h>

// What a run does not go on from, and what it says: other models, rows and settings, damage, paths.
namespace zeroth::e2e {
namespace {

namespace fs = std::filesystem;

using ResumeRefused = Checkpoints;

TEST_F(ResumeRefused, AFolderOfAnotherModelOrOtherRowsIsRefused) {
  (void)good(long_run("out"));
  make_model("other", {.head_dim = 16});
  const Words again{"--resume_from_checkpoint", "latest"};
  refused(
      long_run("out", joined(again, {"--model_name_or_path", "other"})),
      4,
      {"belongs to another model than --model_name_or_path other", "--allow model_name_or_path"});
  fs::copy(path("model"), path("moved"), fs::copy_options::recursive);  // the same by another name
  fs::copy(path("rows.json"), path("same.json"));
  const auto outcome = good(
      long_run("out", joined(again, {"--model_name_or_path", "moved", "--dataset", "same.json"})));
  EXPECT_NE(outcome.errors.find("model_name_or_path: checkpoint model, now moved"),
            std::string::npos)
      << outcome.errors;
  write("more.json",
        R"([{"instruction": "a", "output": "b"}, {"instruction": "c", "output": "d"}])");
  fs::rename(path("rows.json"), path("rows.before"));
  fs::rename(path("more.json"), path("rows.json"));
  refused(long_run("out", again), 4, {"was made with other training rows", "--allow dataset"});
  (void)good(long_run("out", joined(again, {"--allow", "dataset", "--max_steps", "14"})));
  fs::rename(path("rows.before"), path("rows.json"));
  const Words older{"--resume_from_checkpoint", "out/checkpoint-8"};
  const Words narrow{"--lora_rank", "4", "--lora_alpha", "16"};
  for (const Words& allowed : {Words{}, Words{"--allow", "lora_rank"}}) {
    refused(long_run("out", joined(older, joined(narrow, allowed))),
            4,
            {"trains other weights", "lora_rank: checkpoint 8, now 4", "--adapter_name_or_path"});
  }
  make_model("wide", {.head_dim = 16});
  refused(
      long_run("out",
               joined(older, {"--model_name_or_path", "wide", "--allow", "model_name_or_path"})),
      4,
      {"trains other parameters than this run",
       "q_proj.lora_B.weight [32, 8]",
       "[64, 8]",
       " more"});
  for (const Words& allowed : {Words{}, Words{"--allow", "optim"}}) {
    refused(long_run("out", joined(older, joined({"--optim", "lion"}, allowed))),
            4,
            {"holds means of gradients and of their squares (adamw_torch)",
             "this run's optimizer keeps a mean of gradients (lion)",
             "(--optim adamw_torch)"});
  }
  (void)good(long_run("out", joined(older, {"--optim", "lamb", "--allow", "optim"})));
}

TEST_F(ResumeRefused, ACheckpointIsKnownWhateverItsPathSays) {
  (void)good(long_run("out"));
  fs::create_directory_symlink("out/checkpoint-8", path("link"));
  for (const std::string from :
       {"checkpoint-8", "checkpoint-8/", "../link", "../out/checkpoint-8"}) {
    testing::Invocation inside = invocation(long_run(".",
                                                     {"--model_name_or_path",
                                                      "../model",
                                                      "--dataset",
                                                      "../rows.json",
                                                      "--resume_from_checkpoint",
                                                      from,
                                                      "--overwrite_output_dir"}));
    inside.working_folder = path("out");
    const testing::Outcome outcome = testing::run(inside);
    EXPECT_EQ(outcome.exit_code, 0) << from << outcome.errors;
    EXPECT_TRUE(has("out/checkpoint-4") && has("out/checkpoint-8")) << from;
  }
  refused(long_run("out", {"--resume_from_checkpoint", ""}),
          2,
          {"resume_from_checkpoint", "takes a folder, latest, auto"});
}

TEST_F(ResumeRefused, ADamagedCheckpointIsRefusedByTheNameOfItsFile) {
  (void)good(long_run("out"));
  const fs::path folder = path("out/checkpoint-12");
  for (const std::string name :
       {"state-00000-of-00001.safetensors", "adapter_model.safetensors", "trainer_state.json"}) {
    const std::string whole = content_of(folder / name);
    std::string damaged = whole;
    damaged[damaged.size() - 5] ^= 1;
    write("out/checkpoint-12/" + name, damaged);
    const bool weights = name.ends_with(".safetensors");
    refused(long_run("out", {"--resume", "latest"}), 4, {name, weights ? "is damaged" : ""});
    write("out/checkpoint-12/" + name, whole.substr(0, whole.size() / 2));
    refused(long_run("out", {"--resume", "latest"}), 4, {name, "bytes instead of"});
    write("out/checkpoint-12/" + name, whole);
  }
  std::string manifest = content_of(folder / "checkpoint.json");
  manifest.replace(manifest.find("\"row\": "), 8, "\"row\": 1");
  write("out/checkpoint-12/checkpoint.json", manifest);
  refused(long_run("out", {"--resume", "out/checkpoint-12"}),
          4,
          {"checkpoint.json was changed after it was written"});
  (void)good(long_run("out", {"--resume", "out/checkpoint-8"}));
}

TEST_F(ResumeRefused, ADifferenceIsAnErrorUnderStrict) {
  (void)good(long_run("out"));
  refused(
      long_run("out",
               {"--resume", "latest", "--learning_rate", "5e-4", "--strict", "--max_steps", "14"}),
      2,
      {"--strict: settings are not those of out/checkpoint-12",
       "learning_rate: checkpoint 0.001, now 0.0005 (command line)",
       "max_steps: checkpoint 12, now 14 (command line)"});
}

TEST_F(ResumeRefused, WordsThatMeanNothingAreRefused) {
  refused(long_run("out", {"--save_steps", "2.5"}),
          2,
          {"save_steps 2.5 (command line)", "neither a number"});
  refused(long_run("out", {"--load_best_model_at_end"}), 2, {"needs evaluations while training"});
  refused(
      long_run("out", {"--load_best_model_at_end", "--val_size", "2", "--eval_strategy", "epoch"}),
      2,
      {"load_best_model_at_end", "save_strategy steps", "eval_strategy epoch"});
  refused(long_run("out",
                   {"--load_best_model_at_end",
                    "--val_size",
                    "2",
                    "--eval_strategy",
                    "steps",
                    "--eval_steps",
                    "3"}),
          2,
          {"save_steps 4", "a multiple of", "eval_steps 3"});
  refused(long_run("out", {"--resume", "latest", "--allow", "learning_rate"}),
          2,
          {"--allow learning_rate", "it may change without --allow"});
  refused(
      long_run("out", {"--resume", "latest", "--allow", "lr_rate"}), 2, {"there is no such key"});
  refused(long_run("out",
                   {"--greater_is_better",
                    "true",
                    "--load_best_model_at_end",
                    "--val_size",
                    "2",
                    "--eval_strategy",
                    "steps",
                    "--eval_steps",
                    "4"}),
          2,
          {"greater_is_better", "lower is better"});
}

}  // namespace
}  // namespace zeroth::e2e
