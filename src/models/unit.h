#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace zeroth::kernels {
class PackedWeight;
}

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
  // Rows joined from several: where the one begins that a place belongs to. Undefined: single rows.
  at::Tensor begins_BT{};
  std::int64_t num_targets = 0;    // labels that are predicted; none: a batch without rows
  std::vector<at::Tensor> inputs;  // of networks that are not ours, in place of ids and labels
};

struct ForwardContext {
  const TokenBatch& batch;
  bool training = false;
  std::uint64_t seed = 0;
  std::int64_t update = 0;  // counted from 0; with the seed and the row it decides dropout
  // Where the last unit says how many targets its loss sum counts, if the batch cannot know it.
  std::int64_t* counted_targets = nullptr;
  KvCache* cache = nullptr;    // generation: keys and values of earlier positions
  bool last_position = false;  // logits of each row's last position only
};

struct Parameter {
  std::string name;  // as in the model's files
  // What forward reads; the engine points it at its own storage. Undefined until then where the
  // first value is `stored`.
  at::Tensor value{};
  bool trainable = false;
  bool decays = true;      // weight decay applies (not to norms and biases)
  double rate_factor = 1;  // of its parameter group, times the schedule's learning rate
  std::optional<double> weight_decay{};  // of its parameter group, in place of the optimizer's
  bool is_factor = false;       // forward multiplies by it, [out, in], and may do so with `packed`
  bool is_pure_factor = false;  // and reads it in no other way

  // The value once more as this processor's products read it: of frozen factors alone, and by the
  // engine, which has their final values.
  std::shared_ptr<const kernels::PackedWeight> packed{};

  // The first value as it lies in a model's file, which it keeps mapped: in the file's type, maybe
  // unaligned for it. Writing to it ends the process. Stays where `value` is that place in the
  // file.
  at::Tensor stored{};
  // Its shape, where `value` is undefined or comes and goes with its unit.
  std::vector<std::int64_t> shape{};

  [[nodiscard]] std::vector<std::int64_t> sizes() const {
    return shape.empty() && value.defined() ? value.sizes().vec() : shape;
  }

  [[nodiscard]] std::int64_t numel() const;
  // The elements of the value, or of the stored one, from `begin` on.
  void read_values(std::int64_t begin, std::span<float> values) const;
  // Makes a copy of the stored value its own, where no engine has given it one.
  void materialize(at::ScalarType dtype);
};

class Unit {
 public:
  explicit Unit(std::string name, std::vector<Parameter> parameters = {})
      : parameters_(std::move(parameters)), name_(std::move(name)) {}

  virtual ~Unit() = default;
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  // In the fixed order of the flat layout. Addresses stay valid for the unit's life.
  [[nodiscard]] std::vector<Parameter>& parameters() noexcept { return parameters_; }

  [[nodiscard]] const std::vector<Parameter>& parameters() const noexcept { return parameters_; }

  // Parameters of another unit that forward reads as well (a tied head reads the embedding).
  [[nodiscard]] const std::vector<Parameter*>& borrowed() const noexcept { return borrowed_; }

  // Whether forward draws from LibTorch's generator: what is computed once more for backward must
  // draw the same.
  [[nodiscard]] virtual bool draws_random_numbers() const { return false; }

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

// Elements of all parameters, and of those that train.
struct ParameterCounts {
  std::int64_t all = 0;
  std::int64_t trainable = 0;
};

[[nodiscard]] ParameterCounts count_parameters(const UnitList& units);

}  // namespace zeroth::models
