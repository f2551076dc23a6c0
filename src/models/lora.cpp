#include "models/lora.h"

#include "kernels/dropout.h"
#include "kernels/linear.h"

namespace zeroth::models {
namespace {

const at::Tensor& value_at(const std::vector<Parameter>& parameters, int index) {
  return parameters[static_cast<std::size_t>(index)].value;
}

at::Tensor dropped(const ForwardContext& context,
                   const LinearSlots& slots,
                   double probability,
                   const at::Tensor& x) {
  if (!context.training || probability == 0) {
    return x;
  }
  return kernels::dropout(x,
                          probability,
                          {.seed = context.seed,
                           .module = slots.dropout_module,
                           .update = context.update,
                           .rows = context.batch.rows});
}

}  // namespace

at::Tensor adapted_linear(const ForwardContext& context,
                          const std::vector<Parameter>& parameters,
                          const LinearSlots& slots,
                          const LoraScale& lora,
                          const at::Tensor& x) {
  const at::Tensor bias = slots.bias < 0 ? at::Tensor() : value_at(parameters, slots.bias);
  const at::Tensor base = kernels::linear(x, value_at(parameters, slots.weight), bias);
  if (slots.lora_a < 0) {
    return base;
  }
  const at::Tensor input = dropped(context, slots, lora.dropout, x);
  const at::Tensor low = kernels::linear(input, value_at(parameters, slots.lora_a));
  return base.add(kernels::linear(low, value_at(parameters, slots.lora_b)), lora.scale);
}

}  // namespace zeroth::models
