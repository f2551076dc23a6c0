#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "shapes/model_shape.h"

namespace zeroth::shapes {

// [rows, inner] x [inner, columns], so many times in an update.
struct ProductShape {
  std::int64_t rows = 0;
  std::int64_t inner = 0;
  std::int64_t columns = 0;
  std::string what{};  // "model.layers.0.mlp.up_proj", with its gradient "... dx" or "... dw"

  [[nodiscard]] std::int64_t operations() const noexcept { return 2 * rows * inner * columns; }
};

// Rows of one update that enter the blocks and the head.
struct ProductRows {
  std::int64_t tokens = 0;   // of all blocks
  std::int64_t targets = 0;  // those with a label, which the head sees
};

// The products of an update with the model's own matrices, in the order in which they come: each
// linear's forward, its input's gradient where something below it trains, its weight's where that
// trains. LoRA's own products and attention's are not among them: this is what the roofline of
// `zeroth bench` is made of. `trains` says it of a parameter or an adapted module's name;
// `adapted` of a module.
[[nodiscard]] std::vector<ProductShape> products_of_update(
    const ModelShape& model,
    const ProductRows& rows,
    const std::function<bool(const std::string& parameter)>& trains,
    const std::function<bool(const std::string& module)>& adapted);

}  // namespace zeroth::shapes
