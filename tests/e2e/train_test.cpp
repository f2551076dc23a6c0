#include <cmath>

#include "e2e/support.h"
#include "formats/safetensors.h"
#include <fmt/format.h>

namespace zeroth::e2e {
namespace {

namespace fs = std::filesystem;

const Words kFourRows{"--per_device_train_batch_size", "4"};

TEST_F(EndToEnd, LoraLeavesAnAdapterThatPeftCanRead) {
  const Json summary = json_of(train("out", joined(kFourRows, {"--lora_rank", "4"})));
  EXPECT_EQ(summary.at("updates"), 3);
  EXPECT_EQ(summary.at("rows"), 12);
  for (const char* file : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}) {
    EXPECT_EQ(content_of(path("out") / file), content_of(path("model") / file)) << file;
  }
  EXPECT_FALSE(fs::exists(path("out/.zeroth.lock")));
  const Json config = Json::parse(content_of(path("out/adapter_config.json")));
  EXPECT_EQ(config.at("peft_type"), "LORA");
  EXPECT_EQ(config.at("r"), 4);
  EXPECT_EQ(config.at("lora_alpha"), 8);
  EXPECT_EQ(config.at("target_modules").size(), 7U);
  const formats::SafetensorsFile adapter(path("out/adapter_model.safetensors"));
  EXPECT_EQ(adapter.tensors().size(), 2U * 7 * 2);  // layers x linears x (A, B)
  const auto& up = adapter.at("base_model.model.model.layers.1.mlp.up_proj.lora_A.weight").shape;
  EXPECT_EQ(up, (std::vector<std::int64_t>{4, 32}));
}

TEST_F(EndToEnd, EveryUpdateHasItsRecord) {
  (void)good(train("out",
                   {"--per_device_train_batch_size",
                    "2",
                    "--gradient_accumulation_steps",
                    "3",
                    "--log_micro_steps",
                    "--val_size",
                    "4",
                    "--eval_strategy",
                    "epoch",
                    "--max_steps",
                    "4"}));
  const auto updates = records_of(path("out"), "update");
  ASSERT_EQ(updates.size(), 4U);
  for (const char* field : {"step",
                            "epoch",
                            "loss",
                            "grad_norm",
                            "clip_factor",
                            "learning_rate",
                            "rows",
                            "target_tokens",
                            "micro_steps",
                            "attempts",
                            "seconds",
                            "tokens_per_second",
                            "memory_bytes",
                            "model_state_bytes",
                            "offload_read_bytes",
                            "offload_write_bytes"}) {
    EXPECT_TRUE(updates[0].contains(field)) << field;
  }
  EXPECT_EQ(updates[0].at("rows"), 6);
  EXPECT_EQ(updates[0].at("micro_steps"), 3);
  EXPECT_EQ(updates[3].at("rows"), 2);  // 20 rows: 6 + 6 + 6 + 2
  EXPECT_EQ(updates[3].at("micro_steps"), 1);
  EXPECT_DOUBLE_EQ(updates[3].at("epoch").get<double>(), 1.0);
  EXPECT_EQ(records_of(path("out"), "micro_step").size(), 10U);
  const auto evaluations = records_of(path("out"), "evaluation");
  ASSERT_EQ(evaluations.size(), 1U);
  EXPECT_EQ(evaluations[0].at("rows"), 4);
  // The mean over an update's micro-steps, weighted by targets, is the update's loss.
  double sum = 0;
  double weight = 0;
  for (const Json& record : records_of(path("out"), "micro_step")) {
    if (record.at("step") == 1) {
      sum += record.at("loss").get<double>() * record.at("target_tokens").get<double>();
      weight += record.at("target_tokens").get<double>();
    }
  }
  EXPECT_EQ(updates[0].at("target_tokens").get<double>(), weight);
  EXPECT_NEAR(updates[0].at("loss").get<double>(), sum / weight, 1e-9);
}

TEST_F(EndToEnd, TheSameCommandGivesTheSameBytes) {
  const Words words = joined(kFourRows, {"--lora_dropout", "0.1"});
  (void)good(train("first", words));
  (void)good(train("second", words));
  EXPECT_EQ(content_of(path("first/adapter_model.safetensors")),
            content_of(path("second/adapter_model.safetensors")));
}

// N01, N03: rows of very different lengths and masks, ten updates.
TEST_F(EndToEnd, TheBatchIsTheBatchHoweverItIsCut) {
  const Words ten{"--max_steps", "10", "--per_device_train_batch_size"};
  (void)good(train("cut", joined(ten, {"1", "--gradient_accumulation_steps", "8"})));
  (void)good(train("whole", joined(ten, {"8"})));
  EXPECT_LE(relative_distance(tensors_of(path("cut/adapter_model.safetensors")),
                              tensors_of(path("whole/adapter_model.safetensors"))),
            1e-5);
}

TEST_F(EndToEnd, FullTrainingLeavesAModelThatIsLoadedAgain) {
  (void)good(train("fp32", joined(kFourRows, {"--finetuning_type", "full"})));
  (void)good(train("bf16", joined(kFourRows, {"--finetuning_type", "full", "--bf16"})));
  const formats::SafetensorsFile wide(path("fp32/model.safetensors"));
  const formats::SafetensorsFile half(path("bf16/model.safetensors"));
  const std::string name = "model.embed_tokens.weight";
  EXPECT_EQ(wide.at(name).dtype, formats::DType::kF32);
  EXPECT_EQ(half.at(name).dtype, formats::DType::kBF16);
  EXPECT_EQ(Json::parse(content_of(path("bf16/config.json"))).at("torch_dtype"), "bfloat16");
  const double before = records_of(path("bf16"), "update").at(0).at("loss").get<double>();
  const double after = json_of({"eval", "--model_name_or_path", "bf16", "--dataset", "rows.json"})
                           .at("loss")
                           .get<double>();
  EXPECT_LT(after, before);
}

TEST_F(EndToEnd, EpochsCountRows) {
  const Words epochs{"--per_device_train_batch_size", "5", "--num_train_epochs", "2"};
  // 24 rows: 5 updates an epoch.
  EXPECT_EQ(json_of(train("out", joined(epochs, {"--max_steps", "-1"}))).at("updates"), 10);
}

TEST_F(EndToEnd, PlainTextIsPackedUnlessAskedOtherwise) {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    text += fmt::format("Sentence number {} of this text. ", i);
  }
  write("book.txt", text);
  write("texts.jsonl", "{\"text\": \"one short text\"}\n{\"text\": \"and another\"}\n");
  const Words pretrain{"train",
                       "--model_name_or_path",
                       "model",
                       "--stage",
                       "pt",
                       "--dataset",
                       "book.txt,texts.jsonl",
                       "--cutoff_len",
                       "32",
                       "--max_steps",
                       "1"};
  const auto packed = good(joined(pretrain, {"--output_dir", "packed"}));
  EXPECT_NE(packed.errors.find("documents: 3 read, 3 kept"), std::string::npos) << packed.errors;
  const auto single = good(joined(pretrain, {"--output_dir", "single", "--packing", "false"}));
  EXPECT_NE(single.errors.find("training: 3 rows"), std::string::npos) << single.errors;
  EXPECT_NE(single.errors.find("1 truncated to cutoff_len"), std::string::npos) << single.errors;
}

TEST_F(EndToEnd, BadRowsAreDroppedAndCountedWhenAsked) {
  write("mixed.json", R"([{"instruction": "a", "output": "fine"}, {"output": 3},
 {"instruction": "no output"}, {"instruction": "b", "output": ""}])");
  const testing::Outcome outcome =
      good(train("out", {"--skip_bad_rows", "--dataset", "mixed.json"}));
  EXPECT_NE(outcome.errors.find("4 read, 1 kept, dropped 2 bad, 1 with an empty answer"),
            std::string::npos)
      << outcome.errors;
}

TEST_F(EndToEnd, OddModelsTrain) {
  make_model("parts", {.tied = false, .file_bytes = 20000});
  make_model("half", {.bf16 = true, .head_dim = 6});
  EXPECT_TRUE(fs::exists(path("parts/model.safetensors.index.json")));
  for (const char* name : {"parts", "half"}) {
    (void)good(train(fmt::format("out-{}", name), {"--model_name_or_path", name}));
  }
}

TEST_F(EndToEnd, WordsOfWarning) {
  write("model/config.json", [&] {
    Json config = Json::parse(content_of(path("model/config.json")));
    config["max_position_embeddings"] = 8;
    return config.dump();
  }());
  const testing::Outcome outcome = good(train("out",
                                              {"--per_device_train_batch_size",
                                               "100",
                                               "--warmup_steps",
                                               "50",
                                               "--cutoff_len",
                                               "20",
                                               "--max_steps",
                                               "3"}));
  for (const char* words : {"1 per epoch of the 24 rows there are, fewer than a global batch",
                            "the warm-up of 50 never ends",
                            "rows are longer than the 8 positions"}) {
    EXPECT_NE(outcome.errors.find(words), std::string::npos) << outcome.errors;
  }
}

TEST_F(EndToEnd, PathsMayHoldSpacesAndUnicode) {
  const std::string folder = "a b/\u6570\u636e it's";
  write(folder + "/rows \u884c.json", content_of(path("rows.json")));
  fs::create_directory_symlink(path("model"), path("link"));
  const testing::Outcome outcome =
      good(train(folder + "/out",
                 {"--model_name_or_path", "link", "--dataset", folder + "/rows \u884c.json"}));
  EXPECT_TRUE(fs::exists(path(folder + "/out/adapter_model.safetensors")));
  EXPECT_NE(outcome.errors.find("--adapter_name_or_path 'a b/\u6570\u636e it'\\''s/out'"),
            std::string::npos)
      << outcome.errors;
}

}  // namespace
}  // namespace zeroth::e2e
