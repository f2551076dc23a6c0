#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

// What a program tells Zeroth about its network: an ordered list of units, and a loss. A
// torch::nn::Module becomes one by model_of() (zeroth/torch_module.h).
namespace zeroth {

// What one forward on one rank takes: whatever the network reads.
struct Batch {
  std::vector<at::Tensor> tensors;
  std::int64_t rows = -1;      // -1: the first dim of the first tensor, 0 without tensors
  bool last_of_epoch = false;  // may have fewer rows than the micro-batch in force, even none
};

// What the loss of a micro-batch gives: a sum that can be differentiated and how many terms it has,
// target tokens as a rule. An update follows the mean over all terms of all its micro-batches and
// ranks. A mean that the network computes itself is one term: weight 1. Nothing is to be divided by
// the accumulation steps or the ranks.
struct Loss {
  at::Tensor sum;
  std::int64_t weight = 1;
};

// One run of a unit.
struct Pass {
  const Batch& batch;
  bool training = false;
};

struct Parameter {
  std::string name;  // its own in the whole model
  at::Tensor value;  // stays this tensor: Zeroth moves what it points at
  bool trainable = true;
};

// Parameters that are gathered, computed with and released together. The first unit's input is
// undefined: it reads the batch.
struct Unit {
  using Forward = std::function<at::Tensor(const at::Tensor& input, const Pass& pass)>;

  std::string name;
  std::vector<Parameter> parameters;
  Forward forward;
  std::vector<std::string> borrows{};  // other units' parameters that forward reads as well
  std::vector<at::Tensor> buffers{};   // never trained; rank 0's values go to all at the start
};

struct Model {
  std::vector<Unit> units;
  // Of the last unit's output.
  std::function<Loss(const at::Tensor& output, const Batch& batch)> loss;
  // Called when training turns to evaluation and back; may be empty.
  std::function<void(bool training)> set_training{};
};

}  // namespace zeroth
