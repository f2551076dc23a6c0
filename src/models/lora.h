#pragma once

#include <vector>

#include "kernels/packed_weight.h"
#include "models/unit.h"
#include "shapes/lora.h"

#include <ATen/core/Tensor.h>

namespace zeroth::models {

// Where a linear layer of a unit finds its parameters: indices into the unit's list, -1 where it
// has none.
struct LinearSlots {
  int weight = -1;
  int bias = -1;
  int lora_a = -1;
  int lora_b = -1;
  int magnitude = -1;                // DoRA's
  double scale = 0;                  // of the adapter
  double dropout = 0;                // on the input of A, in training only
  std::uint64_t dropout_module = 0;  // this layer's number in dropout's key
};

// What adapts a model.
struct ModelLora {
  double dropout = 0;
  std::vector<shapes::AdaptedModule> modules;
};

// Dropout's numbers of the modules outside the blocks, which are counted from 0.
inline constexpr std::uint64_t kHeadModule = std::uint64_t{1} << 40;

// The index of a parameter, or -1.
[[nodiscard]] int index_of(const std::vector<Parameter>& parameters, const std::string& name);

[[nodiscard]] LinearSlots slots_of(const std::vector<Parameter>& parameters,
                                   const std::string& module,
                                   std::uint64_t dropout_module,
                                   const ModelLora& lora);

// x W^T + bias + scale * dropout(x) A^T B^T. Hu et al., "LoRA", 2021. With a magnitude m the rows
// of W + scale B A are brought to its lengths (Liu et al., "DoRA", 2024); the lengths that they
// have are no function of the parameters for the gradient, as in section 4.3 there.
[[nodiscard]] at::Tensor adapted_linear(const ForwardContext& context,
                                        const std::vector<Parameter>& parameters,
                                        const LinearSlots& slots,
                                        const at::Tensor& x);

// The same of values that are chosen already: `weight` may be another unit's, and `low_input` is
// what enters A, dropped out or x itself.
[[nodiscard]] at::Tensor adapted_product(const std::vector<Parameter>& parameters,
                                         const LinearSlots& slots,
                                         const kernels::Weight& weight,
                                         const at::Tensor& x,
                                         const at::Tensor& low_input);

// As products take it.
[[nodiscard]] kernels::Weight weight_of(const Parameter& parameter);

[[nodiscard]] bool drops(const ForwardContext& context, const LinearSlots& slots);
[[nodiscard]] at::Tensor dropped(const ForwardContext& context,
                                 const LinearSlots& slots,
                                 const at::Tensor& x_BTC);

// Rows of the embedding, and of its adapter where it has one.
[[nodiscard]] at::Tensor adapted_embedding(const std::vector<Parameter>& parameters,
                                           const LinearSlots& slots,
                                           const at::Tensor& ids);

// The lengths of the rows of weight + scale * b a, in fp32; b and a may be undefined. No autograd.
[[nodiscard]] at::Tensor row_lengths(const at::Tensor& weight,
                                     const at::Tensor& a,
                                     const at::Tensor& b,
                                     double scale);

}  // namespace zeroth::models
