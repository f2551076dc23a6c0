#pragma once

#include <memory>
#include <optional>
#include <string>

#include "formats/model_config.h"
#include "kernels/gated.h"
#include "kernels/rms_norm.h"
#include "models/lora.h"
#include "models/positions.h"
#include "models/unit.h"

// What the units of the decoder families are built of. A building block reads parameters of the
// unit that it stands in, found by name when it is made. Shapes: B rows, T tokens, C hidden, H
// query heads, K key heads, D head size.
namespace zeroth::models {

// What the units of one model share.
struct Surroundings {
  const formats::ModelConfig& config;  // looked at while the blocks are made
  ModelLora lora{};
  std::shared_ptr<Positions> positions{};
};

// Where a building block is put.
struct BuildingSite {
  const std::vector<Parameter>& parameters;  // of its unit; stays where it is
  const Surroundings& model;
  std::int64_t layer = 0;  // decides the kind of attention and dropout's numbers
};

class Norm {
 public:
  Norm(const BuildingSite& site, const std::string& module);
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const;
  // x + added, and the norm of that.
  [[nodiscard]] kernels::SumAndNorm of_sum(const at::Tensor& x, const at::Tensor& added) const;

 private:
  const Parameter* weight_;
  double epsilon_;
  kernels::NormWeight form_;
};

// With its adapter, if it has one.
class Linear {
 public:
  // `number` is unique in the model: dropout's key.
  Linear(const BuildingSite& site, const std::string& module, std::int64_t number);
  [[nodiscard]] at::Tensor operator()(const ForwardContext& context, const at::Tensor& x) const;

 private:
  const std::vector<Parameter>* parameters_;
  LinearSlots slots_;
};

// Linears of a block that dropout may number: q, k, v, o, gate, up, down.
inline constexpr std::int64_t kLinearsPerBlock = 7;

// [B, T, C] -> [B, T, C]: causal, with what the config says of windows, rope, norms of heads, scale
// and soft-cap.
class Attention {
 public:
  Attention(const BuildingSite& site, const std::string& module);
  [[nodiscard]] at::Tensor operator()(const ForwardContext& context, const at::Tensor& x_BTC) const;

 private:
  [[nodiscard]] at::Tensor turned_heads(const at::Tensor& x,
                                        std::int64_t count,
                                        const std::optional<Norm>& norm) const;

  Linear q_, k_, v_, o_;
  std::optional<Norm> q_norm_, k_norm_;
  std::shared_ptr<Positions> positions_;
  std::int64_t layer_, num_heads_, num_key_heads_, head_dim_;
  std::size_t kind_;
  double scale_, soft_cap_;
};

// down(activation(gate(x)) * up(x))
class Mlp {
 public:
  Mlp(const BuildingSite& site, const std::string& module);
  [[nodiscard]] at::Tensor operator()(const ForwardContext& context, const at::Tensor& x_BTC) const;

 private:
  Linear gate_, up_, down_;
  kernels::GateActivation activation_;
};

}  // namespace zeroth::models
