#include "models/base_weights.h"

#include <algorithm>
#include <cstdint>

#include "models/first_values.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

namespace zeroth::models {
namespace {

constexpr const char* kEmbedding = "model.embed_tokens.weight";
constexpr const char* kHead = "lm_head.weight";

// Summed row by row, so that it does not depend on how many threads there are.
at::Tensor mean_row(const at::Tensor& matrix) {
  constexpr std::int64_t kRowsAtOnce = 256;
  const std::int64_t columns = matrix.size(1);
  std::vector<double> sums(static_cast<std::size_t>(columns));
  for (std::int64_t begin = 0; begin < matrix.size(0); begin += kRowsAtOnce) {
    const std::int64_t rows = std::min(kRowsAtOnce, matrix.size(0) - begin);
    const at::Tensor some = matrix.narrow(0, begin, rows).to(at::kFloat).contiguous();
    const auto* values = some.data_ptr<float>();
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      sums[static_cast<std::size_t>(i % columns)] += values[i];
    }
  }
  at::Tensor mean = at::empty({1, columns}, at::kFloat);
  for (std::int64_t i = 0; i < columns; ++i) {
    mean.data_ptr<float>()[i] =
        static_cast<float>(sums[static_cast<std::size_t>(i)] / static_cast<double>(matrix.size(0)));
  }
  return mean;
}

at::Tensor with_mean_rows(const at::Tensor& matrix, std::int64_t rows) {
  const at::Tensor mean = mean_row(matrix).to(matrix.scalar_type());
  return at::cat({matrix, mean.expand({rows - matrix.size(0), matrix.size(1)})});
}

}  // namespace

BaseWeights::BaseWeights(const formats::ModelConfig& config,
                         std::shared_ptr<const formats::ModelWeights> files,
                         std::vector<AdapterToMerge> adapters)
    : config_(config), files_(std::move(files)), adapters_(std::move(adapters)) {
  if (config_.tie_word_embeddings && (changes(kEmbedding) || changes(kHead))) {
    config_.tie_word_embeddings = false;
    config_.raw["tie_word_embeddings"] = false;
  }
}

bool BaseWeights::changes(const std::string& parameter) const {
  return std::any_of(adapters_.begin(), adapters_.end(), [&](const AdapterToMerge& adapter) {
    return adapter.changes(parameter);
  });
}

const formats::TensorView& BaseWeights::stored(const std::string& parameter) const {
  return files_->at(name_in_files(*files_, parameter));
}

formats::DType BaseWeights::stored_type(const std::string& parameter) const {
  return stored(parameter).dtype;
}

at::Tensor BaseWeights::value(const std::string& parameter) const {
  at::Tensor value = borrowed_tensor(stored(parameter), files_);
  const bool has_a_row_a_token = parameter == kEmbedding || parameter == kHead;
  if (has_a_row_a_token && value.size(0) < config_.vocab_size) {
    value = with_mean_rows(value, config_.vocab_size);
  }
  for (const AdapterToMerge& adapter : adapters_) {
    if (adapter.changes(parameter)) {
      value = adapter.merged(parameter, value);
    }
  }
  return value;
}

}  // namespace zeroth::models
