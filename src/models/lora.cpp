#include "models/lora.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/dropout.h"
#include "kernels/embedding.h"
#include "kernels/linear.h"
#include "kernels/lora_linear.h"
#include "kernels/product.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <c10/core/GradMode.h>

namespace zeroth::models {
namespace {

constexpr std::int64_t kRowsAtATime = 1024;  // of a weight, widened

const at::Tensor& value_at(const std::vector<Parameter>& parameters, int index) {
  return parameters[static_cast<std::size_t>(index)].value;
}

// What the rows' lengths are multiplied with: [out].
at::Tensor stretch(const std::vector<Parameter>& parameters,
                   const LinearSlots& slots,
                   const at::Tensor& weight) {
  const at::Tensor lengths = row_lengths(
      weight, value_at(parameters, slots.lora_a), value_at(parameters, slots.lora_b), slots.scale);
  const at::Tensor& magnitude = value_at(parameters, slots.magnitude);
  return (magnitude.to(at::kFloat) / lengths).to(magnitude.scalar_type());
}

// The adapter's part is computed from an input of its own, and so is that part of the base which
// the lengths change, as PEFT does it.
at::Tensor stretched(const std::vector<Parameter>& parameters,
                     const LinearSlots& slots,
                     const kernels::Weight& weight,
                     const at::Tensor& x,
                     const at::Tensor& low_input,
                     const at::Tensor& low) {
  const at::Tensor factor = stretch(parameters, slots, weight.plain);
  const at::Tensor base = kernels::linear(x, weight);
  if (low_input.is_same(x)) {
    return base.add(low, slots.scale) * factor;
  }
  return base + kernels::linear(low_input, weight) * (factor - 1) + low * (factor * slots.scale);
}

}  // namespace

int index_of(const std::vector<Parameter>& parameters, const std::string& name) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].name == name) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

LinearSlots slots_of(const std::vector<Parameter>& parameters,
                     const std::string& module,
                     std::uint64_t dropout_module,
                     const ModelLora& lora) {
  LinearSlots slots{.weight = index_of(parameters, module + ".weight"),
                    .bias = index_of(parameters, module + ".bias"),
                    .dropout_module = dropout_module};
  for (const shapes::AdaptedModule& adapted : lora.modules) {
    if (adapted.module == module) {
      const auto names = shapes::lora_parameters(adapted);
      slots.lora_a = index_of(parameters, names[0].name);
      slots.lora_b = index_of(parameters, names[1].name);
      slots.magnitude = adapted.dora ? index_of(parameters, names[2].name) : -1;
      slots.scale = adapted.scale;
      slots.dropout = lora.dropout;
    }
  }
  return slots;
}

kernels::Weight weight_of(const Parameter& parameter) {
  return {parameter.value, parameter.packed};
}

bool drops(const ForwardContext& context, const LinearSlots& slots) {
  return context.training && slots.dropout > 0;
}

at::Tensor dropped(const ForwardContext& context,
                   const LinearSlots& slots,
                   const at::Tensor& x_BTC) {
  return kernels::dropout(x_BTC,
                          slots.dropout,
                          {.seed = context.seed,
                           .module = slots.dropout_module,
                           .update = context.update,
                           .rows = context.batch.rows});
}

at::Tensor adapted_linear(const ForwardContext& context,
                          const std::vector<Parameter>& parameters,
                          const LinearSlots& slots,
                          const at::Tensor& x) {
  return adapted_product(parameters,
                         slots,
                         weight_of(parameters[static_cast<std::size_t>(slots.weight)]),
                         x,
                         drops(context, slots) ? dropped(context, slots, x) : x);
}

at::Tensor adapted_product(const std::vector<Parameter>& parameters,
                           const LinearSlots& slots,
                           const kernels::Weight& weight,
                           const at::Tensor& x,
                           const at::Tensor& low_input) {
  const at::Tensor bias = slots.bias < 0 ? at::Tensor() : value_at(parameters, slots.bias);
  if (slots.lora_a < 0) {
    return kernels::linear(x, weight, bias);
  }
  if (slots.magnitude < 0) {
    const at::Tensor y = kernels::lora_linear(x,
                                              weight,
                                              low_input.is_same(x) ? at::Tensor() : low_input,
                                              value_at(parameters, slots.lora_a),
                                              value_at(parameters, slots.lora_b),
                                              slots.scale);
    return bias.defined() ? y + bias : y;
  }
  const at::Tensor low =
      kernels::linear(kernels::linear(low_input, value_at(parameters, slots.lora_a)),
                      value_at(parameters, slots.lora_b));
  const at::Tensor y = stretched(parameters, slots, weight, x, low_input, low);
  return bias.defined() ? y + bias : y;
}

at::Tensor adapted_embedding(const std::vector<Parameter>& parameters,
                             const LinearSlots& slots,
                             const at::Tensor& ids) {
  const at::Tensor rows = kernels::embedding(value_at(parameters, slots.weight), ids);
  if (slots.lora_a < 0) {
    return rows;
  }
  const at::Tensor low = kernels::embedding(value_at(parameters, slots.lora_a).t(), ids);
  return rows.add(kernels::linear(low, value_at(parameters, slots.lora_b)), slots.scale);
}

at::Tensor row_lengths(const at::Tensor& weight,
                       const at::Tensor& a,
                       const at::Tensor& b,
                       double scale) {
  const c10::NoGradGuard no_grad;
  const std::int64_t rows = weight.size(0);
  at::Tensor lengths = at::empty({rows}, at::kFloat);
  for (std::int64_t begin = 0; begin < rows; begin += kRowsAtATime) {
    const std::int64_t count = std::min(kRowsAtATime, rows - begin);
    at::Tensor part = weight.detach().narrow(0, begin, count).to(at::kFloat);
    if (a.defined()) {
      part = part.add(kernels::product(b.detach().narrow(0, begin, count), a.detach(), at::kFloat),
                      scale);
    }
    lengths.narrow(0, begin, count).copy_(at::linalg_vector_norm(part, 2, {1}));
  }
  return lengths;
}

}  // namespace zeroth::models
