#pragma once

#include "models/unit.h"

#include <ATen/core/Tensor.h>

namespace zeroth::models {

// Where a linear layer of a unit finds its parameters: indices into the unit's list, -1 where it
// has none.
struct LinearSlots {
  int weight = -1;
  int bias = -1;
  int lora_a = -1;
  int lora_b = -1;
  std::uint64_t dropout_module = 0;  // this layer's number in dropout's key
};

struct LoraScale {
  double scale = 0;    // alpha / rank
  double dropout = 0;  // on the input of A, in training only
};

// x W^T + bias + scale * dropout(x) A^T B^T. Hu et al., "LoRA", 2021.
[[nodiscard]] at::Tensor adapted_linear(const ForwardContext& context,
                                        const std::vector<Parameter>& parameters,
                                        const LinearSlots& slots,
                                        const LoraScale& lora,
                                        const at::Tensor& x);

}  // namespace zeroth::models
