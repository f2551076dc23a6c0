#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "formats/safetensors.h"
#include "models/first_values.h"

#include <ATen/core/Tensor.h>

namespace zeroth::train {

// The tensors of a result. Each is made when its turn comes and dropped when the next one's does:
// a process holds one at a time.
class TensorsInTurn {
 public:
  using Value = std::function<at::Tensor()>;

  TensorsInTurn() = default;
  TensorsInTurn(const TensorsInTurn&) = delete;
  TensorsInTurn& operator=(const TensorsInTurn&) = delete;

  // `value` is asked later, and written as `dtype`.
  void add(const std::string& name, formats::DType dtype, at::IntArrayRef shape, Value value) {
    to_write_.push_back(
        {.name = name,
         .dtype = dtype,
         .shape = shape.vec(),
         .bytes = [this, dtype, value = std::move(value)] { return take_turn(value, dtype); }});
  }

  [[nodiscard]] const std::vector<formats::TensorToWrite>& to_write() const noexcept {
    return to_write_;
  }

 private:
  std::span<const std::byte> take_turn(const Value& value, formats::DType dtype) {
    held_ = at::Tensor();  // before the next one is made
    held_ = value().detach().to(models::scalar_type(dtype)).contiguous();
    return {static_cast<const std::byte*>(held_.data_ptr()), held_.nbytes()};
  }

  at::Tensor held_;
  std::vector<formats::TensorToWrite> to_write_;
};

}  // namespace zeroth::train
