#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "formats/safetensors.h"
#include "shapes/model_shape.h"

#include <ATen/core/Tensor.h>

// What parameters hold before the first update. Random values depend on the seed and the
// parameter's name alone, so they are the same on every machine and for any order of making.
namespace zeroth::models {

// Of weights' types; others have been refused by now.
[[nodiscard]] at::ScalarType scalar_type(formats::DType dtype);

// A head that was tied has the embedding's values.
[[nodiscard]] std::string name_in_files(const formats::ModelWeights& weights,
                                        const std::string& parameter);

// The tensor where the file is mapped, which `owner` keeps so. Its pages cannot be written.
[[nodiscard]] at::Tensor borrowed_tensor(const formats::TensorView& view,
                                         std::shared_ptr<const void> owner = nullptr);

// As Transformers starts them: normal with the given deviation; norms and biases as their shape
// says.
[[nodiscard]] at::Tensor random_weight(const shapes::ParameterShape& shape,
                                       double deviation,
                                       std::uint64_t seed,
                                       at::ScalarType dtype);

// As PEFT starts them: B is 0, A Kaiming uniform with a = sqrt(5), which is uniform in
// +-1/sqrt(in), or normal with a deviation of 1 / rank where `gaussian`; an embedding's A is 0 and
// its B normal.
[[nodiscard]] at::Tensor first_lora_value(const shapes::ParameterShape& shape,
                                          bool gaussian,
                                          std::uint64_t seed,
                                          at::ScalarType dtype);

}  // namespace zeroth::models
