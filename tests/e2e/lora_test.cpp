#include <algorithm>

#include "e2e/checkpoints.h"
#include <fmt/format.h>

// Every kind of adapter as a user meets it: trained, evaluated, gone on with, resumed, on several
// ranks; adapters that are merged; freeze-tuning.
namespace zeroth::e2e {
namespace {

namespace fs = std::filesystem;

struct Kind {
  const char* name;
  Words words;
};

std::vector<Kind> kinds() {
  return {{"rslora", {"--use_rslora", "true"}},
          {"dora", {"--use_dora", "true"}},
          {"regex", {"--lora_target", R"(.*\.(q|v)_proj)"}},
          {"embedding", {"--lora_target", "embed_tokens,q_proj"}},
          {"head", {"--lora_target", "lm_head,q_proj"}},
          {"whole_head", {"--additional_target", "lm_head"}},
          {"whole_embedding", {"--additional_target", "embed_tokens,norm"}},
          {"biases", {"--model_name_or_path", "biased", "--bias", "all"}},
          {"some_biases",
           {"--model_name_or_path", "biased", "--bias", "lora_only", "--lora_target", "q_proj"}},
          {"patterns",
           {"--rank_pattern",
            R"({"q_proj": 2})",
            "--alpha_pattern",
            R"({"v_proj": 4})",
            "--layers_to_transform",
            "1",
            "--exclude_modules",
            "o_proj"}},
          {"gaussian", {"--init_lora_weights", "gaussian", "--loraplus_lr_ratio", "16"}}};
}

class Lora : public Checkpoints {
 protected:
  void SetUp() override {
    Checkpoints::SetUp();
    Json config = Json::parse(content_of(path("model/config.json")));
    config["attention_bias"] = true;
    write("biased.json", config.dump());
    (void)good({"init-model", "--model_config", "biased.json", "--output_dir", "biased"});
    fs::copy(path("model/tokenizer.json"), path("biased"));
  }

  [[nodiscard]] Json evaluated(const Words& kind, const std::string& adapters) const {
    const bool biased = std::find(kind.begin(), kind.end(), "biased") != kind.end();
    return json_of({"eval",
                    "--model_name_or_path",
                    biased ? "biased" : "model",
                    "--dataset",
                    "rows.json",
                    "--val_size",
                    "5",
                    "--adapter_name_or_path",
                    adapters});
  }

  [[nodiscard]] Json config_in(const std::string& folder) const {
    return Json::parse(content_of(path(folder + "/adapter_config.json")));
  }
};

// As PEFT saved adapters before it wrote safetensors.
TEST_F(Lora, AnAdapterOfTorchSaveIsTheSameAdapter) {
  const fs::path golden = fs::path(ZEROTH_SOURCE_DIR) / "tests" / "golden";
  const fs::path plain = golden / "transformers" / "peft" / "llama3" / "plain";
  for (const char* folder : {"llama3", "new", "old"}) {
    fs::create_directories(path(folder));
  }
  fs::copy(golden / "transformers" / "llama3" / "config.json", path("llama3"));
  fs::copy(golden / "transformers" / "llama3" / "model.safetensors", path("llama3"));
  fs::copy(path("model/tokenizer.json"), path("llama3"));
  for (const char* folder : {"new", "old"}) {
    fs::copy(plain / "adapter_config.json", path(folder));
  }
  fs::copy(plain / "adapter_model.safetensors", path("new"));
  fs::copy(golden / "torch" / "adapter_model.bin", path("old"));
  const auto loss_with = [&](const std::string& adapter) {
    return json_of({"eval",
                    "--model_name_or_path",
                    "llama3",
                    "--dataset",
                    "rows.json",
                    "--adapter_name_or_path",
                    adapter})
        .at("loss");
  };
  EXPECT_EQ(loss_with("old"), loss_with("new"));
  EXPECT_EQ(json_of({"inspect", "old"}).at("kind"), "adapter");
  (void)good({"export",
              "--merge",
              "--model_name_or_path",
              "llama3",
              "--adapter_name_or_path",
              "old",
              "--output_dir",
              "merged"});
  fs::remove(path("old/adapter_model.bin"));
  refused({"eval",
           "--model_name_or_path",
           "llama3",
           "--dataset",
           "rows.json",
           "--adapter_name_or_path",
           "old"},
          4,
          {"holds no adapter's weights", "adapter_model.safetensors", "adapter_model.bin"});
}

TEST_F(Lora, EveryKindIsTrainedEvaluatedAndGoneOnWith) {
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.name);
    const std::string out = kind.name;
    const Json trained =
        json_of(train(out, joined(kind.words, {"--val_size", "5", "--learning_rate", "1e-2"})));
    const Json read = evaluated(kind.words, out);
    EXPECT_NEAR(read.at("loss").get<double>(), trained.at("eval_loss").get<double>(), 1e-6);
    Words model;
    if (kind.words[0] == "--model_name_or_path") {
      model = {kind.words[0], kind.words[1]};
    }
    (void)good(train(out + "-more",
                     joined(model, {"--adapter_name_or_path", out, "--learning_rate", "0"})));
    const Tensors before = tensors_of(path(out + "/adapter_model.safetensors"));
    EXPECT_EQ(tensors_of(path(out + "-more/adapter_model.safetensors")), before);
    EXPECT_EQ(config_in(out + "-more"), config_in(out));
  }
}

TEST_F(Lora, EveryKindResumesToTheSameBits) {
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.name);
    (void)good(long_run("whole", joined(kind.words, {"--overwrite_output_dir"})));
    fs::remove_all(path("out"));
    fs::copy(path("whole"), path("out"), fs::copy_options::recursive);
    cut_back_to("out", 8);
    (void)good(long_run("out", joined(kind.words, {"--resume_from_checkpoint", "latest"})));
    expect_same_run("out", "whole");
  }
}

TEST_F(Lora, EveryKindIsTheSameOnTwoRanksOfStageThree) {
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.name);
    (void)good(train("one", joined(kind.words, {"--overwrite_output_dir"})));
    (void)good(train("two",
                     joined(kind.words,
                            {"--overwrite_output_dir",
                             "--ranks",
                             "2",
                             "--zero_stage",
                             "3",
                             "--per_device_train_batch_size",
                             "4"})));
    EXPECT_LT(relative_distance(tensors_of(path("two/adapter_model.safetensors")),
                                tensors_of(path("one/adapter_model.safetensors"))),
              1e-3);
  }
}

TEST_F(Lora, AdaptersAreMergedBeforeANewOneIsTrained) {
  (void)good(train("first", {"--learning_rate", "1e-2", "--use_dora", "true"}));
  const Words on_it{"--adapter_name_or_path", "first", "--create_new_adapter", "true"};
  const Json second = json_of(train(
      "second", joined(on_it, {"--val_size", "5", "--lora_rank", "3", "--use_rslora", "true"})));
  EXPECT_EQ(config_in("second").at("r"), 3);
  EXPECT_NEAR(evaluated({}, "first,second").at("loss").get<double>(),
              second.at("eval_loss").get<double>(),
              1e-5);
  (void)good(train("more", {"--adapter_name_or_path", "first,second", "--learning_rate", "0"}));
  EXPECT_EQ(tensors_of(path("more/adapter_model.safetensors")),
            tensors_of(path("second/adapter_model.safetensors")));
  const auto outcome = good(train("third", on_it));
  EXPECT_NE(outcome.errors.find("--adapter_name_or_path first,third"), std::string::npos)
      << outcome.errors;
}

TEST_F(Lora, FreezeTuningTrainsSomeBlocksAndLeavesAModel) {
  (void)good(train("out",
                   {"--finetuning_type",
                    "freeze",
                    "--freeze_trainable_layers",
                    "1",
                    "--freeze_trainable_modules",
                    "mlp",
                    "--freeze_extra_modules",
                    "embed_tokens",
                    "--learning_rate",
                    "1e-2"}));
  const Tensors base = tensors_of(path("model/model.safetensors"));
  const Tensors tuned = tensors_of(path("out/model.safetensors"));
  ASSERT_EQ(tuned.size(), base.size());
  for (const auto& [name, values] : base) {
    const bool trains =
        name.find(".1.mlp.") != std::string::npos || name.find("embed_tokens") != std::string::npos;
    EXPECT_EQ(tuned.at(name) != values, trains) << name;
  }
  (void)good({"eval", "--model_name_or_path", "out", "--dataset", "rows.json"});
}

TEST_F(Lora, WhatDoesNothingOrDoesNotFitIsRefused) {
  refused(train("out", {"--rank_pattern", R"({"w_proj": 2})"}), 2, {"rank_pattern \"w_proj\""});
  refused(train("out", {"--layers_to_transform", "0,9"}), 2, {"layers_to_transform 9"});
  refused(train("out", {"--additional_target", "score"}), 2, {"modules_to_save \"score\""});
  refused(
      train("out", {"--bias", "all"}), 2, {"bias: the adapted modules of this model have none"});
  refused(train("out", {"--lora_target", "q_prj.*"}), 2, {"q_prj.*", "no whole name", "q_proj"});
  refused(train("out", {"--lora_target", "(q_proj"}), 2, {"no regular expression"});
  refused(train("out", {"--lora_target", "embed_tokens", "--use_dora", "true"}), 2, {"DoRA"});
  refused(train("out", {"--finetuning_type", "freeze", "--freeze_trainable_modules", "atn"}),
          2,
          {"freeze_trainable_modules atn", "self_attn"});
  refused(train("out", {"--lora_rank", "0"}), 2, {"--lora_rank"});
}

TEST_F(Lora, AnAdapterOfAnotherBaseIsToldWithBothNamesAndShapes) {
  (void)good(train("four", {"--lora_rank", "4", "--max_steps", "1"}));
  make_model("wide", {.head_dim = 16});
  refused(train("out", {"--model_name_or_path", "wide", "--adapter_name_or_path", "four"}),
          4,
          {"trained on model", "q_proj", "has shape [", "expected ["});
  fs::copy(path("model"), path("copy"));
  const auto outcome =
      good(train("out", {"--model_name_or_path", "copy", "--adapter_name_or_path", "four"}));
  EXPECT_NE(outcome.errors.find("four was trained on model, and is added to copy"),
            std::string::npos)
      << outcome.errors;
}

}  // namespace
}  // namespace zeroth::e2e
