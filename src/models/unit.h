#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

// A model is an ordered list of units: parameters that are gathered, computed with and released
// together. The engine walks the list forward, then backward; a unit only computes. It knows no
// ranks and no stages.
namespace zeroth::models {

class KvCache;

// What enters the first unit and what all units may look at. Matrices are [B, T], int64.
struct TokenBatch {
  at::Tensor ids_BT;
  at::Tensor
      labels_BT;  // -100 where nothing is predicted; not shifted; undefined when logits are wanted
  std::vector<std::int64_t>
      rows;  // the identity of each row, for dropout; may be empty in evaluation
  // Generation: leading padding of each row, which no position may see; empty where there is none.
  std::vector<std::int64_t> left_padding;
  std::int64_t num_targets = 0;  // labels that are predicted
};

struct ForwardContext {
  const TokenBatch& batch;
  bool training = false;
  std::uint64_t seed = 0;
  std::int64_t update = 0;     // counted from 0; with the seed and the row it decides dropout
  KvCache* cache = nullptr;    // generation: keys and values of earlier positions
  bool last_position = false;  // logits of each row's last position only
};

struct Parameter {
  std::string name;  // as in the model's files
  at::Tensor value;  // what forward reads; the engine may point it at its own storage
  bool trainable = false;
  bool decays = true;  // weight decay applies (not to norms and biases)
};

class Unit {
 public:
  explicit Unit(std::string name) : name_(std::move(name)) {}

  virtual ~Unit() = default;
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  // In the fixed order of the flat layout. Addresses stay valid for the unit's life.
  [[nodiscard]] std::vector<Parameter>& parameters() noexcept { return parameters_; }

  [[nodiscard]] const std::vector<Parameter>& parameters() const noexcept { return parameters_; }

  // Parameters of another unit that forward reads as well (a tied head reads the embedding).
  [[nodiscard]] const std::vector<Parameter*>& borrowed() const noexcept { return borrowed_; }

  // The last unit gives the loss sum where the batch has labels, else logits.
  [[nodiscard]] virtual at::Tensor forward(const ForwardContext& context,
                                           const at::Tensor& input) = 0;

 protected:
  std::vector<Parameter> parameters_;
  std::vector<Parameter*> borrowed_;

 private:
  std::string name_;
};

using UnitList = std::vector<std::unique_ptr<Unit>>;

}  // namespace zeroth::models
