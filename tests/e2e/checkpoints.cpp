#include "e2e/checkpoints.h"

#include <algorithm>

namespace zeroth::e2e {

namespace fs = std::filesystem;

Words long_run(const std::string& out, const Words& more) {
  const std::vector<Words> usual{{"--max_steps", "12"},
                                 {"--per_device_train_batch_size", "2"},
                                 {"--warmup_steps", "4"},
                                 {"--lr_scheduler_type", "cosine"},
                                 {"--lora_dropout", "0.1"},
                                 {"--save_steps", "4"}};
  Words words;
  for (const Words& option : usual) {
    if (std::find(more.begin(), more.end(), option[0]) == more.end()) {
      words = joined(words, option);
    }
  }
  return train(out, joined(words, more));
}

void Checkpoints::cut_back_to(const std::string& out, int update) const {
  for (const fs::directory_entry& entry : fs::directory_iterator(path(out))) {
    const std::string name = entry.path().filename().string();
    const bool later = name.starts_with("checkpoint-") &&
                       std::stoi(name.substr(std::string("checkpoint-").size())) > update;
    const bool result = name.ends_with(".safetensors") || name == "adapter_config.json" ||
                        name == "trainer_state.json";
    if (later || result) {
      fs::remove_all(entry.path());
    }
  }
  write(out + "/latest", "checkpoint-" + std::to_string(update) + "\n");
}

void Checkpoints::expect_same_run(const std::string& out, const std::string& reference) const {
  EXPECT_TRUE(weights_in(out) == weights_in(reference)) << out;
  const auto records = [&](const std::string& folder) {
    std::string text;
    for (Json record : lines_of(path(folder + "/metrics.jsonl"))) {
      for (const char* timed : {"seconds", "tokens_per_second", "memory_bytes"}) {
        record.erase(timed);
      }
      text += record.dump() + "\n";
    }
    return text;
  };
  EXPECT_EQ(records(out), records(reference)) << out;
}

std::string Checkpoints::weights_in(const std::string& folder) const {
  const bool adapter = has(folder + "/adapter_model.safetensors");
  return content_of(path(folder + (adapter ? "/adapter_model.safetensors" : "/model.safetensors")));
}

bool Checkpoints::has(const std::string& name) const {
  return fs::exists(path(name));
}

}  // namespace zeroth::e2e
