#include "inputs/model_inputs.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "formats/adapter.h"
#include "formats/safetensors.h"
#include "shapes/families.h"
#include <fmt/format.h>

namespace zeroth::inputs {
namespace {

namespace fs = std::filesystem;

bool asks_for_tokens(const config::ModelSettings& model) {
  return model.resize_vocab || !model.add_tokens.empty() || !model.add_special_tokens.empty();
}

// The rows of an embedding or head that an adapter brings whole; 0 if it has none.
std::int64_t rows_in(const fs::path& adapter) {
  constexpr std::array<std::string_view, 4> kEnds{"embed_tokens.weight",
                                                  "embed_tokens.base_layer.weight",
                                                  "lm_head.weight",
                                                  "lm_head.base_layer.weight"};
  std::int64_t rows = 0;
  const auto file = formats::open_tensor_file(formats::adapter_weights_path(adapter));
  for (const auto& [name, view] : file.tensors()) {
    const bool is_end = std::any_of(
        kEnds.begin(), kEnds.end(), [&](std::string_view end) { return name.ends_with(end); });
    if (is_end && view.shape.size() == 2) {
      rows = std::max(rows, view.shape.front());
    }
  }
  return rows;
}

// An adapter whose run had added tokens.
struct WiderAdapter {
  fs::path folder;
  std::int64_t rows = 0;
};

std::optional<WiderAdapter> wider_adapter(const config::ModelSettings& model, std::int64_t rows) {
  std::optional<WiderAdapter> widest;
  for (const std::string& folder : model.adapter_folders()) {
    const std::int64_t own = rows_in(folder);
    if (own > rows && (!widest || own > widest->rows)) {
      widest = WiderAdapter{folder, own};
    }
  }
  return widest;
}

// Makes room in the embedding, and says what was done.
class Fitting {
 public:
  Fitting(const config::RunConfig& config, ModelInputs inputs)
      : config_(config), inputs_(std::move(inputs)) {}

  ModelInputs fit(const std::optional<WiderAdapter>& adapter) && {
    if (adapter) {
      take_rows(adapter->rows);
      remark(
          fmt::format("{} has rows for {} tokens, {} more than the model: its embedding grows "
                      "to them, with the tokenizer of {}",
                      adapter->folder.string(),
                      adapter->rows,
                      adapter->rows - inputs_.stored_rows,
                      inputs_.tokenizer_folder.string()));
    }
    tell_of_tokens();
    if (asks_for_tokens(config_.model)) {
      take_rows_for_tokens();
    }
    return std::move(inputs_);
  }

 private:
  void tell_of_tokens() {
    const auto asked = static_cast<std::int64_t>(inputs_.new_tokens.plain.size() +
                                                 inputs_.new_tokens.special.size());
    const std::int64_t added = inputs_.tokenizer.num_new();
    if (added > 0) {
      const std::int64_t last = inputs_.tokenizer.max_id();
      remark(added == 1
                 ? fmt::format("tokens added: 1 (id {})", last)
                 : fmt::format("tokens added: {} (ids {} to {})", added, last - added + 1, last));
    }
    if (asked > added) {
      remark(fmt::format("tokens that the tokenizer has already: {} of {}; they keep their ids",
                         asked - added,
                         asked));
    }
  }

  void take_rows_for_tokens() {
    const std::int64_t tokens = std::int64_t{inputs_.tokenizer.max_id()} + 1;
    const std::int64_t rows = inputs_.model_config.vocab_size;
    if (tokens <= rows) {
      remark(fmt::format("the embedding has {} rows, enough for {} tokens", rows, tokens));
      return;
    }
    if (config_.is_given("resize_vocab") && !config_.model.resize_vocab) {
      throw Error(ErrorKind::kConfig,
                  fmt::format("the added tokens need {} rows of the embedding, it has {}, and "
                              "resize_vocab is false\n  Leave resize_vocab out, or add no tokens.",
                              tokens,
                              rows));
    }
    take_rows(tokens);
    inputs_.adds_rows = true;
    remark(
        fmt::format("the embedding grows from {} to {} rows; the new ones start at the mean of "
                    "the others",
                    rows,
                    tokens));
  }

  void take_rows(std::int64_t rows) {
    inputs_.model_config.vocab_size = rows;
    inputs_.model_config.raw["vocab_size"] = rows;
  }

  void remark(std::string text) { inputs_.remarks.push_back(std::move(text)); }

  const config::RunConfig& config_;
  ModelInputs inputs_;
};

}  // namespace

ModelInputs open_model_inputs(const config::RunConfig& config) {
  const fs::path folder = config.model.model_name_or_path;
  formats::ModelConfig model = shapes::read_model_config(folder / "config.json");
  const auto adapter = wider_adapter(config.model, model.vocab_size);
  const bool brings_tokens = adapter && fs::exists(adapter->folder / "tokenizer.json");
  const fs::path of_tokenizer = brings_tokens ? adapter->folder : folder;
  const text::NewTokens tokens{.plain = config.model.add_tokens,
                               .special = config.model.add_special_tokens};
  const std::int64_t rows = model.vocab_size;
  return Fitting(config,
                 {.model_config = std::move(model),
                  .stored_rows = rows,
                  .tokenizer = text::Tokenizer::load(of_tokenizer, tokens),
                  .tokenizer_folder = of_tokenizer,
                  .new_tokens = tokens,
                  .remarks = {}})
      .fit(adapter);
}

formats::ModelConfig model_config_of(const config::RunConfig& config, const fs::path& file) {
  const std::vector<std::string> adapters = config.model.adapter_folders();
  const bool there = std::all_of(adapters.begin(), adapters.end(), [](const std::string& folder) {
    std::error_code error;
    return fs::is_directory(folder, error);
  });
  if (!asks_for_tokens(config.model) && (adapters.empty() || !there)) {
    return shapes::read_model_config(file);  // a plan needs no adapter's files
  }
  if (config.model.model_name_or_path.empty()) {
    throw Error(ErrorKind::kConfig,
                "how many rows added tokens need depends on the tokenizer\n  Give the model's "
                "folder: --model_name_or_path.");
  }
  return open_model_inputs(config).model_config;
}

}  // namespace zeroth::inputs
