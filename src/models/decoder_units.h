#pragma once

#include <memory>

#include "models/lora.h"
#include "models/positions.h"
#include "models/unit.h"
#include "shapes/model_shape.h"

// The units of a LLaMA (Touvron et al., 2023; Hugging Face's LlamaForCausalLM). Shapes: B rows, T
// tokens, C hidden, H query heads, K key heads, D head size, V vocabulary.
namespace zeroth::models {

struct BlockOptions {
  std::int64_t layer = 0;
  std::int64_t num_heads = 0;
  std::int64_t num_key_heads = 0;
  std::int64_t head_dim = 0;
  double norm_epsilon = 0;
  LoraScale lora;
};

// ids -> hidden [B, T, C]
class EmbeddingUnit : public Unit {
 public:
  EmbeddingUnit(std::vector<Parameter> parameters, std::shared_ptr<Positions> positions);
  at::Tensor forward(const ForwardContext& context, const at::Tensor& input) override;

 private:
  std::shared_ptr<Positions> positions_;
};

// hidden -> hidden: attention and MLP, each normed before and added to what came in.
class BlockUnit : public Unit {
 public:
  BlockUnit(const shapes::UnitShape& shape,
            std::vector<Parameter> parameters,
            const BlockOptions& options,
            std::shared_ptr<Positions> positions);
  at::Tensor forward(const ForwardContext& context, const at::Tensor& hidden_BTC) override;

 private:
  [[nodiscard]] at::Tensor attention(const ForwardContext& context, const at::Tensor& x_BTC) const;
  [[nodiscard]] at::Tensor mlp(const ForwardContext& context, const at::Tensor& x_BTC) const;
  [[nodiscard]] at::Tensor norm(int index, const at::Tensor& x) const;
  [[nodiscard]] at::Tensor linear(const ForwardContext& context,
                                  const LinearSlots& slots,
                                  const at::Tensor& x) const;

  BlockOptions options_;
  std::shared_ptr<Positions> positions_;
  int input_norm_ = -1;
  int post_attention_norm_ = -1;
  LinearSlots q_, k_, v_, o_, gate_, up_, down_;
};

// hidden -> loss sum over the batch's targets, or logits [B, T or 1, V].
class HeadUnit : public Unit {
 public:
  // `tied`: the embedding's weight, or nullptr where the head has its own as its second parameter.
  HeadUnit(std::vector<Parameter> parameters, Parameter* tied, double norm_epsilon);
  at::Tensor forward(const ForwardContext& context, const at::Tensor& hidden_BTC) override;

 private:
  [[nodiscard]] at::Tensor logits(const at::Tensor& hidden) const;

  double norm_epsilon_;
};

}  // namespace zeroth::models
