#include "models/merged_base.h"

#include <algorithm>

#include "models/first_values.h"
#include "shapes/families.h"

namespace zeroth::models {
namespace {

constexpr const char* kEmbedding = "model.embed_tokens.weight";
constexpr const char* kHead = "lm_head.weight";

}  // namespace

MergedBase::MergedBase(const formats::ModelConfig& config,
                       std::shared_ptr<const formats::ModelWeights> weights,
                       std::vector<AdapterToMerge> adapters)
    : config_(config), weights_(std::move(weights)), adapters_(std::move(adapters)) {
  if (config_.tie_word_embeddings && (changes(kEmbedding) || changes(kHead))) {
    config_.tie_word_embeddings = false;
    config_.raw["tie_word_embeddings"] = false;
  }
  shape_ = shapes::model_shape(config_);
}

bool MergedBase::changes(const std::string& parameter) const {
  return std::any_of(adapters_.begin(), adapters_.end(), [&](const AdapterToMerge& adapter) {
    return adapter.changes(parameter);
  });
}

const formats::TensorView& MergedBase::stored(const std::string& parameter) const {
  return weights_->at(name_in_files(*weights_, parameter));
}

formats::DType MergedBase::stored_type(const std::string& parameter) const {
  return stored(parameter).dtype;
}

at::Tensor MergedBase::value(const std::string& parameter) const {
  at::Tensor value = borrowed_tensor(stored(parameter), weights_);
  for (const AdapterToMerge& adapter : adapters_) {
    if (adapter.changes(parameter)) {
      value = adapter.merged(parameter, value);
    }
  }
  return value;
}

}  // namespace zeroth::models
