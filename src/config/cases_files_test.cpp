// Published symptoms of configuration files and of several sources: what each file says is read,
// understood, and compared with what the others say.
#include "config/case_support.h"

namespace zeroth::config {
namespace {

constexpr auto kBase = R"(  "train_micro_batch_size_per_gpu": 2,
  "gradient_accumulation_steps": 1,
  "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}})";

std::string base_and(const std::string& more) {
  return "{\n" + std::string(kBase) + ",\n  " + more + "\n}";
}

std::size_t lines_with(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST_F(Case, C01_AMisspeltKeyIsRefusedWithTheNearestOne) {
  const Verdict verdict = check_json(base_and(R"("gradient_clipp1ng": 1.0,
  "zero_optimization": {"offload_optimzer": {"device": "cpu"}, "stge": 2})"));
  EXPECT_TRUE(verdict.says(
      R"(ds.json:5: unknown key "gradient_clipp1ng" (did you mean "gradient_clipping"?))"))
      << verdict.messages();
  EXPECT_TRUE(verdict.says(R"(unknown key "zero_optimization.offload_optimzer" (did you mean )"
                           R"("zero_optimization.offload_optimizer"?))"))
      << verdict.messages();
  EXPECT_TRUE(verdict.says(R"("zero_optimization.stge" (did you mean "zero_optimization.stage"?))"))
      << verdict.messages();
  EXPECT_EQ(verdict.of_kind(ProblemKind::kUnknown).size(), 3U);
}

TEST_F(Case, C01_AKeyThatBeginsWithUnderscoreIsAComment) {
  const Verdict verdict =
      check_json(base_and(R"("_note": "tuned by hand", "_gradient_clipping": 0.5)"));
  EXPECT_TRUE(verdict.accepted()) << verdict.messages();
  EXPECT_EQ(verdict.outcome("_note"), "without effect: a key that begins with _ is a comment");
  EXPECT_TRUE(verdict.notices("ds.json:5: _gradient_clipping is commented out by its _"));
  EXPECT_FALSE(verdict.notices("_note"));
}

TEST_F(Case, C03_TheDeprecatedCpuOffloadWorksWithANotice) {
  const Verdict verdict = check_json(
      base_and(R"("zero_optimization": {"stage": 2, "cpu_offload": true})"), {"--world_size", "2"});
  EXPECT_TRUE(verdict.accepted()) << verdict.messages();
  EXPECT_TRUE(
      verdict.notices("ds.json:5: zero_optimization.cpu_offload is an old name of "
                      "zero_optimization.offload_optimizer.device"))
      << verdict.table();
  EXPECT_TRUE(has(verdict.table(), "zero_optimization.offload_optimizer.device cpu"))
      << verdict.table();
}

TEST_F(Case, C03_TheDeprecatedCpuOffloadAgainstTheNewBlockIsAnError) {
  const Verdict verdict = check_json(base_and(R"("zero_optimization": {"stage": 2,
    "cpu_offload": true,
    "offload_optimizer": {"device": "none"}})"));
  EXPECT_TRUE(
      verdict.says("cpu_offload: true (ds.json:6) vs "
                   R"(zero_optimization.offload_optimizer.device: "none" (ds.json:7))"))
      << verdict.messages();
  EXPECT_EQ(verdict.of_kind(ProblemKind::kConflict).size(), 1U) << verdict.messages();
}

constexpr auto kThreeInYaml = R"(deepspeed_config:
  deepspeed_config_file: DS
  gradient_accumulation_steps: 2
  zero_stage: 2
  zero3_save_16bit_model: true
)";

std::string with_file(std::string yaml, const std::string& file) {
  return yaml.replace(yaml.find("DS"), 2, file);
}

TEST_F(Case, C05_TwoFilesThatDisagreeAreOneErrorWithALineForEachPair) {
  const std::string ds = file("ds.json", R"({"gradient_accumulation_steps": 10,
 "zero_optimization": {"stage": 3,
  "stage3_gather_16bit_weights_on_model_save": false}})");
  const Verdict verdict = check_yaml(with_file(kThreeInYaml, ds));
  ASSERT_EQ(verdict.all.problems.all().size(), 1U) << verdict.messages();
  const std::string message = verdict.messages();
  EXPECT_EQ(lines_with(message, " and "), 3U) << message;
  EXPECT_TRUE(has(message,
                  "deepspeed_config.gradient_accumulation_steps 2 (acc.yaml:3) and "
                  "gradient_accumulation_steps 10 (ds.json:1)"))
      << message;
  EXPECT_TRUE(has(message,
                  "deepspeed_config.zero_stage 2 (acc.yaml:4) and zero_optimization.stage 3 "
                  "(ds.json:2)"))
      << message;
  EXPECT_TRUE(has(message,
                  "deepspeed_config.zero3_save_16bit_model true (acc.yaml:5) and "
                  "zero_optimization.stage3_gather_16bit_weights_on_model_save false (ds.json:3)"))
      << message;
}

TEST_F(Case, C05_TwoFilesThatAgreeStart) {
  const std::string ds = file("ds.json", R"({"gradient_accumulation_steps": 2,
 "zero_optimization": {"stage": 2, "stage3_gather_16bit_weights_on_model_save": true}})");
  const Verdict verdict = check_yaml(with_file(kThreeInYaml, ds), {"--world_size", "2"});
  EXPECT_TRUE(verdict.accepted()) << verdict.messages();
  EXPECT_EQ(verdict.value("gradient_accumulation_steps"), 2);
  EXPECT_EQ(verdict.value("zero_stage"), 2);
}

TEST_F(Case, C06_AnAgreeingFileIsNamedOnce) {
  const std::string ds = file("ds.json",
                              R"({"train_micro_batch_size_per_gpu": 4,
 "gradient_accumulation_steps": 2, "bf16": {"enabled": true}})");
  const std::string yaml = "deepspeed_config:\n  deepspeed_config_file: " + ds +
                           "\n  gradient_accumulation_steps: 2\nmixed_precision: ";
  const Verdict verdict = check_yaml(yaml + "bf16\n", {"--strict"});
  EXPECT_TRUE(verdict.accepted()) << verdict.messages();
  EXPECT_EQ(lines_with(verdict.table(), "bf16 true"), 1U) << verdict.table();
  EXPECT_TRUE(has(verdict.table(), "bf16 true (acc.yaml:4 mixed_precision, ds.json:2 agrees)") ||
              has(verdict.table(), "bf16 true (ds.json:2 bf16.enabled, acc.yaml:4 agrees)"))
      << verdict.table();
  EXPECT_FALSE(has(verdict.table(), "fp16")) << verdict.table();

  const Verdict against = check_yaml(yaml + "fp16\n");
  EXPECT_TRUE(against.says("mixed_precision fp16 (acc.yaml:4) and bf16.enabled true (ds.json:2)"))
      << against.messages();
  EXPECT_EQ(against.of_kind(ProblemKind::kConflict).size(), 1U) << against.messages();
}

TEST_F(Case, C14_AKeyThatStandsTwiceIsRefusedWithBothLines) {
  const Verdict json = check_json(R"({
  "train_micro_batch_size_per_gpu": 2,
  "zero_optimization": {"stage": 2,
    "stage": 3},
  "train_micro_batch_size_per_gpu": 4
})");
  EXPECT_TRUE(
      json.says(R"(ds.json: duplicate key "train_micro_batch_size_per_gpu" (lines 2 and 5))"))
      << json.messages();
  EXPECT_TRUE(json.says(R"(ds.json: duplicate key "stage" (lines 3 and 4))")) << json.messages();
  EXPECT_EQ(json.of_kind(ProblemKind::kDuplicate).size(), 2U);

  const Verdict yaml =
      check({file("run.yaml", "cutoff_len: 1024\nbf16: true\ncutoff_len: 262144\n")});
  EXPECT_TRUE(yaml.says(R"(run.yaml: duplicate key "cutoff_len" (lines 1 and 3))"))
      << yaml.messages();
  const Verdict deep =
      check_yaml("deepspeed_config:\n  zero_stage: 2\n  zero_stage: 3\nmixed_precision: bf16\n");
  EXPECT_TRUE(deep.says(R"(acc.yaml: duplicate key "zero_stage" (lines 2 and 3))"))
      << deep.messages();
}

TEST_F(Case, C27_CommentsAndTrailingCommasAreRead) {
  const Verdict verdict = check_json(R"({
  // note: tuned by hand
  # another note
  "train_micro_batch_size_per_gpu": 16, /* and
  one over two lines */
  "optimizer": {"type": "AdamW", "params": {"lr": 1e-3,},},
  "gradient_clipping": 1.0,})",
                                     {"--strict"});
  EXPECT_TRUE(verdict.accepted()) << verdict.messages();
  EXPECT_EQ(verdict.source("max_grad_norm"), "ds.json:7");
}

TEST_F(Case, C28_AMissingFileIsSaidAsSuch) {
  const Verdict missing = check({"--deepspeed", "confg.json"});
  ASSERT_EQ(missing.of_kind(ProblemKind::kFile).size(), 1U) << missing.messages();
  EXPECT_TRUE(missing.says("ds config not found: confg.json (looked in " +
                           std::filesystem::current_path().string() + ")"))
      << missing.messages();
  const Verdict other = check({"--deepspeed", "eyJiIjoxfQ=="});  // base64 is never tried
  EXPECT_TRUE(other.says("ds config not found: eyJiIjoxfQ==")) << other.messages();
  const Verdict folder_given = check({"--deepspeed", folder()});
  EXPECT_TRUE(folder_given.says("ds config is not a file")) << folder_given.messages();
  for (const char* nothing : {"", "\n\n", "// a comment alone\n"}) {
    const Verdict empty = check_json(nothing);
    EXPECT_TRUE(empty.says("the file is empty")) << empty.messages();
  }
  EXPECT_TRUE(check_yaml("# nothing\n").says("the file is empty"));
  EXPECT_TRUE(check({"run.yaml"}).says("recipe not found: run.yaml"));
}

TEST_F(Case, C43_ANumberInQuotesIsAText) {
  const Verdict verdict = check_json(R"({"optimizer": {"type": "AdamW", "params": {
  "lr": "3e-4", "betas": "auto"}}})");
  EXPECT_TRUE(verdict.says(R"(ds.json:2: optimizer.params.lr takes a number, not string "3e-4")"))
      << verdict.messages();
  EXPECT_EQ(verdict.all.problems.all().size(), 1U) << verdict.messages();
}

TEST_F(Case, C43_BetasAutoComeFromTheCommandLineOrTheDefaults) {
  const std::string json = R"({"optimizer": {"type": "AdamW", "params": {"betas": "auto"}}})";
  const Verdict filled = check_json(json, {"--adam_beta1", "0.8"});
  EXPECT_TRUE(filled.accepted()) << filled.messages();
  EXPECT_EQ(filled.value("adam_beta1"), 0.8);
  EXPECT_TRUE(has(filled.table(), "adam_beta1 0.8 (command line; auto in ds.json:1)"))
      << filled.table();
  EXPECT_TRUE(has(filled.table(), "adam_beta2 0.999 (auto in ds.json:1, filled from default)"))
      << filled.table();
}

TEST_F(Case, C46_AnInventedBlockIsAnsweredWithTheKeyThatIsMeant) {
  const Verdict verdict =
      check_json(base_and(R"("pipeline_parallel": {"pp_size": 4, "microbatches": 4},
  "tensor_parallel": {"autotp_size": 4})"),
                 {"--world_size", "4"});
  EXPECT_TRUE(
      verdict.says(R"(ds.json:5: unknown key "pipeline_parallel": write "pipeline.stages")"))
      << verdict.messages();
  EXPECT_EQ(verdict.all.problems.all().size(), 1U) << verdict.messages();
  EXPECT_NE(verdict.planned("tensor_parallel.autotp_size"), "");
  EXPECT_TRUE(has(check({"--pp_size", "2"}).messages(), "did you mean --pipeline.stages?"));
}

TEST_F(Case, C46_TpSizeIsAnAlias) {
  const Verdict alias =
      check_json(base_and(R"("tensor_parallel": {"tp_size": 4})"), {"--world_size", "4"});
  EXPECT_TRUE(alias.accepted()) << alias.messages();
  EXPECT_EQ(alias.all.config.grid.tp, 4);
  const Verdict both = check_json(
      base_and(R"("tensor_parallel": {"tp_size": 4, "autotp_size": 2})"), {"--world_size", "4"});
  EXPECT_TRUE(both.says("tensor_parallel.tp_size: 4 (ds.json:5) vs tensor_parallel.autotp_size: 2"))
      << both.messages();
}

TEST_F(Case, C48_OptionsAreNeitherAbbreviatedNorGuessed) {
  const Verdict verdict =
      check({"--gradient_accum", "8", "--gradient_acumulation_steps", "8", "--warmup", "3"});
  EXPECT_TRUE(
      verdict.says("unknown option --gradient_accum (did you mean --gradient_accumulation_steps?)"))
      << verdict.messages();
  EXPECT_TRUE(verdict.says(
      "unknown option --gradient_acumulation_steps (did you mean --gradient_accumulation_steps?)"))
      << verdict.messages();
  EXPECT_EQ(verdict.of_kind(ProblemKind::kUnknown).size(), 3U);
  EXPECT_EQ(verdict.value("gradient_accumulation_steps"), 1);
}

TEST_F(Case, C49_AnOldNameIsAcceptedWithANotice) {
  const Verdict recipe = check({file(
      "run.yaml", "evaluation_strategy: steps\nval_size: 0.1\nper_gpu_train_batch_size: 32\n")});
  EXPECT_TRUE(recipe.accepted()) << recipe.messages();
  EXPECT_EQ(recipe.value("eval_strategy"), "steps");
  EXPECT_TRUE(recipe.notices("run.yaml:1: evaluation_strategy is an old name of eval_strategy"));
  EXPECT_TRUE(recipe.notices(
      "run.yaml:3: per_gpu_train_batch_size is an old name of per_device_train_batch_size"));
  const Verdict line = check({"--evaluation-strategy", "no"});
  EXPECT_TRUE(
      line.notices("command line: --evaluation-strategy is an old name of --eval_strategy"));
  EXPECT_FALSE(check({"--eval_strategy", "no"}).notices("old name"));
}

TEST_F(Case, C49_AKeyOfAnotherCommandIsNamedAsSuch) {
  const std::string recipe = file("run.yaml", "do_predict: true\nmax_new_tokens: 64\n");
  const Verdict verdict = check({recipe});
  EXPECT_TRUE(verdict.says("do_predict is a key of zeroth predict")) << verdict.messages();
  EXPECT_EQ(verdict.idle("max_new_tokens"), "a setting of zeroth predict");
}

// Every name that a file may hold has one declared meaning, old ones included.
TEST_F(Case, C49_EveryOldNameTellsAKeyThatIsDeclared) {
  std::size_t old_names = 0;
  for (const Declaration& key : schema()) {
    const std::vector<std::string> names = all_names(key);
    for (const std::string& old : key.old_names) {
      EXPECT_NE(std::find(names.begin(), names.end(), old), names.end()) << key.name << " " << old;
      ++old_names;
    }
    if (!key.successor.empty()) {
      EXPECT_NE(find_declaration(key.successor), nullptr) << key.name;
      ++old_names;
    }
    for (const std::string& mistaken : key.mistaken_names) {
      EXPECT_EQ(find_declaration(mistaken), nullptr) << key.name << " " << mistaken;
    }
  }
  EXPECT_GE(old_names, 10U);
}

}  // namespace
}  // namespace zeroth::config
