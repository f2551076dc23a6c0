#pragma once

#include <memory>
#include <optional>

#include "models/building_blocks.h"
#include "models/families.h"

// The units of every family that the features of ModelConfig describe. Shapes: B rows, T tokens, C
// hidden, V vocabulary.
namespace zeroth::models {

// Embedding, blocks and head, as shapes::decoder_shape names them.
[[nodiscard]] UnitList decoder_units(UnitParts parts);

// For a family with blocks of its own: what all its units share, and the weight that a tied head
// reads (nullptr where it has its own), of the embedding that stands first in `units`.
[[nodiscard]] Surroundings surroundings_of(const UnitParts& parts);
[[nodiscard]] Parameter* tied_weight(const UnitParts& parts, const UnitList& units);

// ids -> hidden [B, T, C]
class EmbeddingUnit : public Unit {
 public:
  EmbeddingUnit(std::vector<Parameter> parameters, const Surroundings& model);
  at::Tensor forward(const ForwardContext& context, const at::Tensor& input) override;

 private:
  LinearSlots slots_;
  std::shared_ptr<Positions> positions_;
  double scale_;  // 1: none
};

// hidden -> hidden: attention and MLP, each normed before, and behind where the config says so, and
// added to what came in.
class BlockUnit : public Unit {
 public:
  BlockUnit(std::vector<Parameter> parameters, const Surroundings& model, std::int64_t layer);
  at::Tensor forward(const ForwardContext& context, const at::Tensor& hidden_BTC) override;

 private:
  BlockUnit(std::vector<Parameter> parameters,
            const Surroundings& model,
            std::int64_t layer,
            const std::string& prefix);

  Norm before_attention_;
  Attention attention_;
  std::optional<Norm> behind_attention_;
  Norm before_mlp_;
  Mlp mlp_;
  std::optional<Norm> behind_mlp_;
};

// hidden -> loss sum over the batch's targets, or logits [B, T or 1, V].
class HeadUnit : public Unit {
 public:
  // `tied`: the embedding's weight, or nullptr where the head has its own.
  HeadUnit(std::vector<Parameter> parameters, const Surroundings& model, Parameter* tied);
  at::Tensor forward(const ForwardContext& context, const at::Tensor& hidden_BTC) override;

 private:
  [[nodiscard]] kernels::Weight weight() const;
  // Of normed places; `low_input` is what enters the head's adapter.
  [[nodiscard]] at::Tensor uncapped_logits(const at::Tensor& normed,
                                           const at::Tensor& low_input) const;
  [[nodiscard]] at::Tensor logits(const at::Tensor& normed) const;
  [[nodiscard]] at::Tensor dropped_places(const ForwardContext& context,
                                          const at::Tensor& hidden_BTC,
                                          const at::Tensor& places,
                                          const at::Tensor& normed) const;

  Norm norm_;
  LinearSlots slots_;
  double soft_cap_;  // 0: none
};

}  // namespace zeroth::models
