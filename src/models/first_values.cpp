#include "models/first_values.h"

#include <cmath>

#include "base/check.h"
#include "base/random.h"
#include "formats/mapped_file.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

namespace zeroth::models {
namespace {

using formats::DType;
using shapes::ParameterShape;

// One number per name, the same on every machine (FNV-1a).
std::uint64_t name_number(const std::string& name) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return hash;
}

template <typename Draw>
at::Tensor drawn(const ParameterShape& shape, std::uint64_t seed, at::ScalarType dtype, Draw draw) {
  at::Tensor tensor = at::empty(shape.shape, at::kFloat);
  RandomStream stream(seed, name_number(shape.name));
  auto* data = tensor.data_ptr<float>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    data[i] = static_cast<float>(draw(stream));
  }
  return tensor.to(dtype);
}

}  // namespace

at::ScalarType scalar_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return at::kFloat;
    case DType::kBF16:
      return at::kBFloat16;
    case DType::kF16:
      return at::kHalf;
    case DType::kF64:
      return at::kDouble;
    default:
      break;
  }
  ZEROTH_CHECK(false, "weights of type {} have not been refused", formats::dtype_name(dtype));
  return at::kFloat;
}

std::string name_in_files(const formats::ModelWeights& weights, const std::string& parameter) {
  return parameter == "lm_head.weight" && !weights.contains(parameter) ? "model.embed_tokens.weight"
                                                                       : parameter;
}

at::Tensor borrowed_tensor(const formats::TensorView& view, std::shared_ptr<const void> owner) {
  auto* data = const_cast<std::byte*>(view.bytes.data());
  return at::from_blob(
      data,
      view.shape,
      [owner = std::move(owner), bytes = view.bytes](void*) { formats::drop_pages(bytes); },
      at::TensorOptions(scalar_type(view.dtype)));
}

at::Tensor random_weight(const ParameterShape& shape,
                         double deviation,
                         std::uint64_t seed,
                         at::ScalarType dtype) {
  switch (shape.first) {
    case shapes::FirstValues::kZero:
      return at::zeros(shape.shape, dtype);
    case shapes::FirstValues::kOne:
      return at::ones(shape.shape, dtype);
    case shapes::FirstValues::kRandom:
      break;
  }
  return drawn(shape, seed, dtype, [deviation](RandomStream& stream) {
    return deviation * stream.normal();
  });
}

at::Tensor first_lora_value(const ParameterShape& shape,
                            bool gaussian,
                            std::uint64_t seed,
                            at::ScalarType dtype) {
  const bool of_embedding = shape.name.find(".lora_embedding_") != std::string::npos;
  if (shape.name.ends_with(".lora_B.weight") || shape.name.ends_with(".lora_embedding_A")) {
    return at::zeros(shape.shape, dtype);
  }
  if (of_embedding || gaussian) {
    const double deviation = of_embedding ? 1.0 : 1.0 / static_cast<double>(shape.shape.front());
    return drawn(shape, seed, dtype, [deviation](RandomStream& stream) {
      return deviation * stream.normal();
    });
  }
  const double bound = 1.0 / std::sqrt(static_cast<double>(shape.shape.back()));
  return drawn(shape, seed, dtype, [bound](RandomStream& stream) {
    return bound * (2.0 * stream.uniform() - 1.0);
  });
}

}  // namespace zeroth::models
