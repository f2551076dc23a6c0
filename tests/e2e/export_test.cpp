#include "e2e/checkpoints.h"

// `zeroth export --merge`: a folder that stands alone and computes what the base and its adapters
// compute; and models that are given by their id on the hub.
namespace zeroth::e2e {
namespace {

namespace fs = std::filesystem;

class Export : public Checkpoints {
 protected:
  [[nodiscard]] Json merged(const std::string& adapters,
                            const std::string& out,
                            const Words& more = {}) const {
    return json_of(joined({"export",
                           "--merge",
                           "--model_name_or_path",
                           "model",
                           "--adapter_name_or_path",
                           adapters,
                           "--output_dir",
                           out},
                          more));
  }

  [[nodiscard]] double loss_of(const Words& model) const {
    return json_of(joined({"eval", "--dataset", "rows.json", "--val_size", "8"}, model)).at("loss");
  }

  [[nodiscard]] std::string answers_of(const std::string& out, const Words& model) const {
    (void)good(
        joined({"predict", "--dataset", "rows.json", "--max_new_tokens", "8", "--output_dir", out},
               model));
    return content_of(path(out + "/generated_predictions.jsonl"));
  }
};

const Words kBase{"--model_name_or_path", "model"};

Words with_adapter(const std::string& adapters) {
  return joined(kBase, {"--adapter_name_or_path", adapters});
}

TEST_F(Export, TheMergedModelComputesWhatTheAdapterDoes) {
  const std::vector<Words> kinds{
      {"--use_dora", "true"},
      {"--lora_target", "embed_tokens,q_proj"},  // of a tied model: its head stays as it was
      {"--additional_target", "lm_head"},
      {"--use_rslora", "true", "--rank_pattern", R"({"q_proj": 2})"}};
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::string name = "kind" + std::to_string(i);
    SCOPED_TRACE(kinds[i].back());
    (void)good(train(name, joined(kinds[i], {"--learning_rate", "1e-2", "--bf16", "false"})));
    const Json told = merged(name, name + "_merged");
    EXPECT_LT(told.at("relative_difference").get<double>(), 1e-5) << told.dump();
    const Words alone{"--model_name_or_path", name + "_merged"};
    EXPECT_NEAR(loss_of(alone), loss_of(with_adapter(name)), 1e-5);
    EXPECT_GT(std::abs(loss_of(alone) - loss_of(kBase)), 1e-3);  // or this test says nothing
    if (i == 0) {
      EXPECT_EQ(answers_of("a", alone), answers_of("b", with_adapter(name)));
    }
  }
  const Json untied = Json::parse(content_of(path("kind1_merged/config.json")));
  EXPECT_EQ(untied.at("tie_word_embeddings"), false);
  EXPECT_EQ(Json::parse(content_of(path("kind0_merged/config.json"))).at("tie_word_embeddings"),
            true);
  (void)good(train("again", {"--model_name_or_path", "kind1_merged"}));
}

TEST_F(Export, SeveralAdaptersTypesAndFileParts) {
  (void)good(train("first", {"--learning_rate", "1e-2"}));
  (void)good(train("second",
                   {"--learning_rate",
                    "1e-2",
                    "--seed",
                    "7",
                    "--adapter_name_or_path",
                    "first",
                    "--create_new_adapter",
                    "true"}));
  (void)merged("first,second", "both", {"--export_size", "0.00002"});
  EXPECT_TRUE(has("both/model.safetensors.index.json"));
  EXPECT_NEAR(
      loss_of({"--model_name_or_path", "both"}), loss_of(with_adapter("first,second")), 1e-5);
  (void)merged("first,second", "rounded", {"--export_dtype", "bf16"});
  EXPECT_EQ(Json::parse(content_of(path("rounded/config.json"))).at("torch_dtype"), "bfloat16");
  EXPECT_NEAR(loss_of({"--model_name_or_path", "rounded"}),
              loss_of({"--model_name_or_path", "both"}),
              0.02);
}

// The sum is made in fp32 and rounded once; what that costs is told, and fp32 costs nothing.
TEST_F(Export, N48_AMergedModelScoresAsItsAdapterDid) {
  make_model("base16", {.bf16 = true});
  const Words base{"--model_name_or_path", "base16"};
  (void)good(train("out", joined(base, {"--learning_rate", "1e-2"})));
  const double unmerged = loss_of(joined(base, {"--adapter_name_or_path", "out"}));
  const auto merge_into = [&](const std::string& folder, const Words& more) {
    return json_of(joined(
        joined({"export", "--adapter_name_or_path", "out", "--output_dir", folder}, base), more));
  };
  const Json rounded = merge_into("rounded", {});
  EXPECT_GT(rounded.at("largest_difference").get<double>(), 1e-5);
  EXPECT_LT(rounded.at("relative_difference").get<double>(), 2e-2);
  EXPECT_NEAR(loss_of({"--model_name_or_path", "rounded"}), unmerged, 5e-3);
  const Json wide = merge_into("wide", {"--merge_dtype", "fp32"});
  EXPECT_LT(wide.at("relative_difference").get<double>(), 1e-5);
  EXPECT_NEAR(loss_of({"--model_name_or_path", "wide"}), unmerged, 1e-5);
}

TEST_F(Export, WhatCannotBeMergedIsRefusedAndNothingIsLost) {
  (void)good(train("out"));
  const Words words{"export", "--model_name_or_path", "model", "--output_dir", "merged"};
  refused(words, 2, {"--adapter_name_or_path is required"});
  refused(joined(words, {"--adapter_name_or_path", "out", "--merge", "false"}),
          2,
          {"leaves nothing to do"});
  refused(joined(words, {"--adapter_name_or_path", "nowhere"}), 4, {"nowhere"});
  refused({"export",
           "--model_name_or_path",
           "model",
           "--adapter_name_or_path",
           "out",
           "--output_dir",
           "model"},
          2,
          {"is the folder that the run reads from"});
  (void)merged("out", "merged");
  refused(
      joined(words, {"--adapter_name_or_path", "out"}), 2, {"merged", "--overwrite_output_dir"});
  make_model("other", {.head_dim = 16});
  refused({"export",
           "--model_name_or_path",
           "other",
           "--adapter_name_or_path",
           "out",
           "--output_dir",
           "wrong"},
          4,
          {"lora_A", "expected"});
  EXPECT_FALSE(has("wrong/model.safetensors"));
}

TEST_F(Export, ModelsInHuggingFacesCacheAreGivenByTheirId) {
  const fs::path repository = path("cache/hub/models--owner--tiny");
  fs::create_directories(repository / "refs");
  fs::create_directories(repository / "snapshots");
  write("cache/hub/models--owner--tiny/refs/main", "0123abc");
  fs::copy(path("model"), repository / "snapshots" / "0123abc");
  const Words environment{"HF_HOME=" + path("cache").string(), "HF_HUB_CACHE="};
  const testing::Outcome outcome =
      zeroth(train("out", {"--model_name_or_path", "owner/tiny"}), environment);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_NE(outcome.errors.find("owner/tiny is " + repository.string() + "/snapshots/0123abc"),
            std::string::npos)
      << outcome.errors;
  EXPECT_EQ(outcome.errors.find("was trained on"), std::string::npos);
  EXPECT_EQ(Json::parse(content_of(path("out/adapter_config.json"))).at("base_model_name_or_path"),
            "owner/tiny");
  EXPECT_EQ(zeroth({"predict",
                    "--model_name_or_path",
                    "owner/tiny",
                    "--cache_dir",
                    path("cache/hub").string(),
                    "--adapter_name_or_path",
                    "out",
                    "--dataset",
                    "rows.json",
                    "--max_new_tokens",
                    "2",
                    "--output_dir",
                    "answers"})
                .exit_code,
            0);
  const testing::Outcome absent =
      zeroth(train("none", {"--model_name_or_path", "owner/other"}), environment);
  EXPECT_EQ(absent.exit_code, 4);
  EXPECT_NE(absent.errors.find("owner/other is neither a folder nor in Hugging Face's cache"),
            std::string::npos)
      << absent.errors;
}

}  // namespace
}  // namespace zeroth::e2e
