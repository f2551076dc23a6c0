#include "base/file.h"
#include "e2e/support.h"
#include "formats/safetensors.h"
#include "formats/weights_writer.h"
#include <sys/stat.h>

namespace zeroth::e2e {
namespace {

namespace fs = std::filesystem;

// A good result stands in out/; whatever the refused run is told, it stays.
class BadInput : public EndToEnd {
 protected:
  void SetUp() override {
    EndToEnd::SetUp();
    write("out/adapter_model.safetensors", "the good result");
    write("out/metrics.jsonl", "{}\n");
  }

  void TearDown() override {
    EXPECT_EQ(content_of(path("out/adapter_model.safetensors")), "the good result");
    EXPECT_EQ(content_of(path("out/metrics.jsonl")), "{}\n");
    EXPECT_FALSE(fs::exists(path("out/.zeroth.lock")));
  }

  void train_refused(const Words& more, int exit_code, const Words& says) const {
    refused(train("out", joined(more, {"--overwrite_output_dir"})), exit_code, says);
  }

  // Writes model/ anew with one tensor changed by `change`.
  void change_weights(
      const std::function<void(std::vector<formats::TensorToWrite>&)>& change) const {
    const fs::path file = path("model/model.safetensors");
    const fs::path other = path("model/other.safetensors");
    {
      const formats::SafetensorsFile opened(file);
      std::vector<formats::TensorToWrite> tensors;
      for (const auto& [name, view] : opened.tensors()) {
        tensors.push_back(formats::to_write(name, view));
      }
      change(tensors);
      formats::write_weights_file(other, tensors);
    }
    fs::rename(other, file);
  }
};

TEST_F(BadInput, DataThatIsNotJsonIsShownWhereItBreaks) {
  write("bad.json", "[\n{\"instruction\": \"a\", \"output\": \"b\"},\n{\"instruction\" \"a\"}]");
  train_refused({"--dataset", "bad.json"}, 3, {"bad.json:3:18", "not valid JSON"});
  write("bad.jsonl", "{\"instruction\": \"a\", \"output\": \"b\"}\n{\"instruction\": \n");
  train_refused({"--dataset", "bad.jsonl"}, 3, {"bad.jsonl:2:", "--skip_bad_rows"});
  write("binary.json", std::string("\x93NUMPY\x01\x00v\x1b[31m\xff", 16));
  train_refused({"--dataset", "binary.json"}, 3, {"binary.json:1:1"});
}

TEST_F(BadInput, EveryBadRowIsListed) {
  write("rows2.json", R"([{"instruction": "a", "output": "b"},
{"output": "b"},
{"instruction": "a", "output": 7}])");
  train_refused({"--dataset", "rows2.json"}, 3, {"2 of 3 rows", "rows2.json:2", "rows2.json:3"});
}

TEST_F(BadInput, FilesThatAreNoDataFiles) {
  write("empty.json", "");
  train_refused({"--dataset", "empty.json"}, 3, {"empty.json is empty"});
  write("none.json", "[]");
  train_refused({"--dataset", "none.json"}, 3, {"no usable row in none.json"});
  train_refused({"--dataset", "model"}, 2, {"model is a folder"});
  train_refused({"--dataset", "/dev/null"}, 2, {"/dev/null"});
  train_refused({"--dataset", "missing.json"}, 3, {"no data file missing.json"});
}

TEST_F(BadInput, BrokenWeights) {
  fs::resize_file(path("model/model.safetensors"), 5000);
  train_refused({}, 4, {"model/model.safetensors", "truncated", "5000"});
  fs::remove(path("model/model.safetensors"));
  train_refused({}, 4, {"model holds no weights"});
  write("model/model.safetensors.index.json",
        R"({"weight_map": {"a": "model-00001-of-00002.safetensors"}})");
  train_refused({},
                4,
                {"named by model/model.safetensors.index.json are missing",
                 "model-00001-of-00002.safetensors"});
}

// Weights that Zeroth wrote bring a checksum, and one flipped bit is enough.
TEST_F(BadInput, DamagedWeights) {
  const auto flip_last_bit = [this](const std::string& file) {
    std::string content = content_of(path(file));
    content.back() = static_cast<char>(content.back() ^ 1);
    write(file, content);
  };
  (void)good(train("four", {"--max_steps", "1"}));
  flip_last_bit("four/adapter_model.safetensors");
  train_refused({"--adapter_name_or_path", "four"},
                4,
                {"four/adapter_model.safetensors is damaged", "zeroth_xxh3"});
  flip_last_bit("model/model.safetensors");
  train_refused({}, 4, {"model/model.safetensors is damaged"});
  train_refused({"--ranks", "2"}, 4, {"model/model.safetensors is damaged"});
}

TEST_F(BadInput, AMissingTensorIsNamed) {
  change_weights([](auto& tensors) {
    std::erase_if(tensors, [](const auto& tensor) { return tensor.name == "model.norm.weight"; });
  });
  train_refused({}, 4, {"model.norm.weight"});
}

TEST_F(BadInput, ATensorOfTheWrongShapeIsNamed) {
  change_weights([](auto& tensors) {
    for (auto& tensor : tensors) {
      if (tensor.name == "model.layers.1.mlp.up_proj.weight") {
        std::swap(tensor.shape[0], tensor.shape[1]);
      }
    }
  });
  train_refused({}, 4, {"model.layers.1.mlp.up_proj.weight", "48", "32"});
}

TEST_F(BadInput, IdsBeyondTheEmbeddingAreNamed) {
  make_model("small", {.vocab_size = 100});
  train_refused({"--model_name_or_path", "small"}, 4, {"100", "rows.json"});
}

TEST_F(BadInput, SettingsThatCannotBeMeant) {
  train_refused({"--threads", "100000"}, 2, {"--threads 100000"});
  train_refused({"--per_device_train_batch_size", "9000000000000000000"}, 2, {"at most"});
  train_refused({"--num_train_epochs", "1e300"}, 2, {"--num_train_epochs"});
  train_refused({"--lora_rank", "100000000000"}, 2, {"--lora_rank"});
  train_refused({"--lora_target", "q_prj"}, 2, {"q_prj", "q_proj"});
  train_refused({"--val_size", "24"}, 3, {"leaves none to train on"});
  train_refused({"--learning_rate", "nan"}, 2, {"--learning_rate"});
}

TEST_F(BadInput, AnotherAdaptersShape) {
  (void)good(train("four", {"--lora_rank", "4", "--max_steps", "1"}));
  train_refused({"--adapter_name_or_path", "four", "--lora_rank", "8"},
                2,
                {"lora_rank 8", "4 in the adapter"});
  make_model("wide", {.head_dim = 16});
  train_refused({"--model_name_or_path", "wide", "--adapter_name_or_path", "four"}, 4, {"q_proj"});
}

TEST_F(BadInput, APromptWithoutRoomCostsNoEarlierPredictions) {
  write("out/generated_predictions.jsonl", "{}\n");
  const Words predict{"predict",
                      "--model_name_or_path",
                      "model",
                      "--dataset",
                      "rows.json",
                      "--output_dir",
                      "out",
                      "--overwrite_output_dir"};
  refused(joined(predict, {"--max_length", "3"}), 2, {">= max_length 3"});
  write("empty.json", R"([{"instruction": "", "output": "x"}])");
  Words nothing = predict;
  nothing[4] = "empty.json";
  refused(nothing, 3, {"the prompt is empty"});
  EXPECT_EQ(content_of(path("out/generated_predictions.jsonl")), "{}\n");
}

TEST_F(BadInput, ResultsAreReplacedOnlyWhenAsked) {
  refused(train("out"), 2, {"adapter_model.safetensors", "--overwrite_output_dir"});
  refused(train("model"), 2, {"the folder that the run reads from"});
  fs::create_directory(path("file-here"));
  write("file-here/out", "");
  refused(train("file-here/out"), 6, {"file-here/out"});
}

TEST_F(EndToEnd, OverwritingReplacesTheWholeResult) {
  (void)good(train("out", {"--finetuning_type", "full", "--max_steps", "1"}));
  (void)good(train("out", {"--max_steps", "1", "--overwrite_output_dir"}));
  EXPECT_FALSE(fs::exists(path("out/model.safetensors")));
  EXPECT_TRUE(fs::exists(path("out/adapter_model.safetensors")));
  EXPECT_EQ(records_of(path("out"), "update").size(), 1U);
}

TEST_F(EndToEnd, AWrongCommandIsRefusedAtOnce) {
  // A tenth of a second on an idle machine; the limit tells a front that waits for something.
  const testing::Outcome outcome = zeroth(train("out", {"--max_step", "3"}));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_LT(outcome.seconds, 5);
}

TEST_F(EndToEnd, APipeIsNotWaitedFor) {
  ASSERT_EQ(::mkfifo(path("pipe.json").c_str(), 0600), 0);
  refused(train("out", {"--dataset", "pipe.json"}), 3, {"pipe.json is a pipe"});
}

}  // namespace
}  // namespace zeroth::e2e
