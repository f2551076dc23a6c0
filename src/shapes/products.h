#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "shapes/lora.h"
#include "shapes/model_shape.h"

namespace zeroth::shapes {

// The matrices that the model's products multiply by: each linear's weight and the head's, own or
// borrowed.
[[nodiscard]] std::vector<ParameterShape> factors_of(const ModelShape& model);

// Those of them that forward and backward read in no other way: neither rows of an embedding, nor
// for DoRA's lengths of rows.
[[nodiscard]] std::vector<ParameterShape> pure_factors_of(const ModelShape& model,
                                                          const LoraTargets& lora);

// What a linear's product is for, which says how its operands lie.
enum class ProductOf { kForward, kInputGradient, kWeightGradient };

// [rows, inner] x [inner, columns].
struct ProductShape {
  std::int64_t rows = 0;
  std::int64_t inner = 0;
  std::int64_t columns = 0;
  ProductOf of = ProductOf::kForward;
  bool frozen = false;  // its weight, which may be packed

  friend auto operator<=>(const ProductShape&, const ProductShape&) = default;
};

// Rows of one micro-step that enter the blocks and the head.
struct ProductRows {
  std::int64_t tokens = 0;   // of all blocks
  std::int64_t targets = 0;  // those with a label, which the head sees
};

// The products of a micro-step with the model's own matrices, in the order in which they come: each
// linear's forward, its input's gradient where something below it trains, its weight's where that
// trains. LoRA's own products and attention's are not among them: this is what the roofline of
// `zeroth bench` is made of. `trains` says it of a parameter or an adapted module's name;
// `adapted` of a module.
[[nodiscard]] std::vector<ProductShape> products_of_micro_step(
    const ModelShape& model,
    const ProductRows& rows,
    const std::function<bool(const std::string& parameter)>& trains,
    const std::function<bool(const std::string& module)>& adapted);

}  // namespace zeroth::shapes
