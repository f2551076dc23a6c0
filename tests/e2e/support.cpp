#include "e2e/support.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/file.h"
#include "base/random.h"
#include "base/text.h"
#include "formats/safetensors.h"
#include "formats/weights_writer.h"
#include "shapes/families.h"
#include <fmt/format.h>
#include <unistd.h>

namespace zeroth::e2e {
namespace {

namespace fs = std::filesystem;

constexpr int kRows = 24;

std::string config_text(const ModelOptions& options) {
  return Json{{"architectures", {"LlamaForCausalLM"}},
              {"model_type", "llama"},
              {"hidden_size", 32},
              {"intermediate_size", 48},
              {"num_hidden_layers", 2},
              {"num_attention_heads", 4},
              {"num_key_value_heads", 2},
              {"head_dim", options.head_dim},
              {"vocab_size", options.vocab_size},
              {"max_position_embeddings", 96},
              {"rms_norm_eps", 1e-5},
              {"hidden_act", "silu"},
              {"tie_word_embeddings", options.tied},
              {"torch_dtype", options.bf16 ? "bfloat16" : "float32"}}
      .dump(2);
}

std::string rows_text() {
  Json rows = Json::array();
  for (int i = 0; i < kRows; ++i) {
    std::string answer = fmt::format("word {}", i * 7);
    for (int repeat = 0; repeat < i % 6; ++repeat) {
      answer += " and so on";
    }
    rows.push_back({{"instruction", fmt::format("say {}", i)},
                    {"input", i % 2 == 0 ? "now" : ""},
                    {"output", answer}});
  }
  return rows.dump(1);
}

std::vector<std::byte> random_bytes(std::int64_t count, bool bf16, RandomStream& random) {
  const std::size_t width = bf16 ? 2 : 4;
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * width);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(0.1 * random.normal());
    std::array<std::byte, 4> raw{};
    std::memcpy(raw.data(), &value, 4);
    // bf16 is the upper half of an fp32 number.
    std::memcpy(bytes.data() + static_cast<std::size_t>(i) * width, raw.data() + 4 - width, width);
  }
  return bytes;
}

void write_weights(const fs::path& folder, const ModelOptions& options) {
  const auto shape = shapes::model_shape(shapes::read_model_config(folder / "config.json"));
  RandomStream random(7, 0);
  std::vector<std::vector<std::byte>> buffers;
  std::vector<formats::TensorToWrite> tensors;
  for (const auto& unit : shape.units) {
    for (const auto& parameter : unit.parameters) {
      buffers.push_back(random_bytes(parameter.numel(), options.bf16, random));
      tensors.push_back({.name = parameter.name,
                         .dtype = options.bf16 ? formats::DType::kBF16 : formats::DType::kF32,
                         .shape = parameter.shape,
                         .bytes = formats::ready(buffers.back())});
    }
  }
  (void)formats::write_model_weights(folder, tensors, options.file_bytes);
}

}  // namespace

fs::path shared_data() {
  return fs::path(ZEROTH_SOURCE_DIR) / ".." / "shared" / "data";
}

std::string content_of(const fs::path& file) {
  return fs::exists(file) ? read_file(file, ErrorKind::kDisk) : "";
}

std::vector<Json> lines_of(const fs::path& file) {
  std::vector<Json> records;
  for (const std::string& line : split(content_of(file), '\n')) {
    if (!line.empty()) {
      records.push_back(Json::parse(line));
    }
  }
  return records;
}

std::vector<Json> records_of(const fs::path& out, const std::string& kind) {
  std::vector<Json> records = lines_of(out / "metrics.jsonl");
  std::erase_if(records, [&](const Json& record) { return record.at("kind") != kind; });
  return records;
}

Tensors tensors_of(const fs::path& file) {
  Tensors tensors;
  const formats::SafetensorsFile opened(file);
  for (const auto& [name, view] : opened.tensors()) {
    EXPECT_EQ(view.dtype, formats::DType::kF32) << name;
    std::vector<float> values(view.bytes.size() / sizeof(float));
    std::memcpy(values.data(), view.bytes.data(), view.bytes.size());
    tensors.emplace(name, std::move(values));
  }
  return tensors;
}

bool soon(const std::function<bool()>& condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition()) {
      return true;
    }
    ::usleep(10'000);
  }
  return false;
}

double relative_distance(const Tensors& a, const Tensors& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0;
  double size = 0;
  for (const auto& [name, values] : b) {
    const auto& others = a.at(name);
    for (std::size_t i = 0; i < values.size(); ++i) {
      difference += std::pow(static_cast<double>(others.at(i)) - values[i], 2);
      size += std::pow(static_cast<double>(values[i]), 2);
    }
  }
  return std::sqrt(difference / size);
}

void EndToEnd::SetUp() {
  write("rows.json", rows_text());
  make_model("model");
}

fs::path EndToEnd::path(const std::string& name) const {
  return folder_.path() / name;
}

void EndToEnd::write(const std::string& name, const std::string& content) const {
  fs::create_directories(path(name).parent_path());
  write_file_atomically(path(name), content);
}

void EndToEnd::make_model(const std::string& name, const ModelOptions& options) const {
  (void)good({"train-tokenizer", "rows.json", "--vocab_size", "280", "--output_dir", name});
  write(name + "/config.json", config_text(options));
  write_weights(path(name), options);
}

void EndToEnd::make_large_model() const {
  Json config = Json::parse(content_of(path("model/config.json")));
  config.update({{"hidden_size", 512},
                 {"intermediate_size", 1376},
                 {"num_hidden_layers", 8},
                 {"num_attention_heads", 8},
                 {"num_key_value_heads", 8},
                 {"head_dim", 64}});
  write("config.json", config.dump());
  (void)good({"init-model", "--model_config", "config.json", "--output_dir", "large"});
  fs::copy(path("model/tokenizer.json"), path("large"));
}

testing::Invocation EndToEnd::invocation(const Words& words) const {
  return {.arguments = joined({ZEROTH_PROGRAM}, words),
          .input = "",
          .environment = {"OMP_WAIT_POLICY=passive"},  // these models are too small to spin for
          .working_folder = folder_.path()};
}

testing::Outcome EndToEnd::zeroth(const Words& words) const {
  return testing::run(invocation(words));
}

testing::Outcome EndToEnd::good(const Words& words) const {
  testing::Outcome outcome = zeroth(words);
  EXPECT_EQ(outcome.exit_code, 0) << join(words, " ") << "\n" << outcome.errors;
  return outcome;
}

Json EndToEnd::json_of(Words words) const {
  const testing::Outcome outcome = good(joined(std::move(words), {"--format", "json"}));
  EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1) << outcome.output;
  return Json::parse(outcome.output);
}

void EndToEnd::refused(const Words& words, int exit_code, const Words& says) const {
  const testing::Outcome outcome = zeroth(words);
  EXPECT_EQ(outcome.exit_code, exit_code) << join(words, " ") << "\n" << outcome.errors;
  EXPECT_EQ(outcome.output, "");
  for (const std::string& part : says) {
    EXPECT_NE(outcome.errors.find(part), std::string::npos) << "not said: " << part << "\nsaid:\n"
                                                            << outcome.errors;
  }
}

Words train(const std::string& out, const Words& more) {
  const std::vector<Words> usual{{"--model_name_or_path", "model"},
                                 {"--dataset", "rows.json"},
                                 {"--learning_rate", "1e-3"},
                                 {"--max_steps", "3"}};
  Words words{"train", "--output_dir", out};
  for (const Words& option : usual) {
    if (std::find(more.begin(), more.end(), option[0]) == more.end()) {
      words = joined(words, option);
    }
  }
  return joined(words, more);
}

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace zeroth::e2e
