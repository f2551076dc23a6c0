#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/product.h"

#include <ATen/core/Tensor.h>

// Weights in the layout that this processor's products read fastest. Which that is depends on the
// matrix and its type alone: not on the rows of the other operand, the threads or the result's
// type; where a product would want another one, it takes the plain weights.
namespace zeroth::kernels {

// What a weight is packed for: nothing, x W^T alone, or g W as well.
enum class Packing { kNone, kForward, kBoth };

// A matrix W [out, in] that is not written any more.
struct MatrixShape {
  std::int64_t out = 0;
  std::int64_t in = 0;
  at::ScalarType dtype = at::kFloat;
};

// The two products of a linear with its weight.
enum class Side { kForward, kInputGradient };

class PackedWeight {
 public:
  // Bytes of memory for a matrix of that shape; 0 where this processor has no layout of its own for
  // it. The same on processors of one kind.
  [[nodiscard]] static std::int64_t bytes_for(const MatrixShape& shape, Packing packing);

  // In memory of bytes_for(), which begins at a multiple of kAlignment: half as fast elsewhere.
  static constexpr std::int64_t kAlignment = 64;
  PackedWeight(const MatrixShape& shape, Packing packing, std::shared_ptr<std::byte> memory);
  ~PackedWeight();
  PackedWeight(const PackedWeight&) = delete;
  PackedWeight& operator=(const PackedWeight&) = delete;

  // Fills the memory, which other processes may read. `weight` is contiguous.
  void pack(const at::Tensor& weight) const;

  [[nodiscard]] bool serves_both() const;  // forward and the input's gradient

  // The product of `a` with this side's matrix into `out`, if it is packed and the product reads
  // this layout; else nothing is done.
  [[nodiscard]] bool multiply(const at::Tensor& out,
                              const at::Tensor& a,
                              Side side,
                              Accumulate mode) const;

 private:
  struct Sides;
  std::unique_ptr<const Sides> sides_;
  std::shared_ptr<std::byte> memory_;
  MatrixShape shape_;
};

using PackedPtr = std::shared_ptr<const PackedWeight>;

// The weight of a linear: its values, and the same packed where it is.
struct Weight {
  at::Tensor plain;  // [out, in]
  PackedPtr packed{};

  // NOLINTNEXTLINE(google-explicit-constructor): a weight that is not packed is its tensor
  Weight(at::Tensor values, PackedPtr as_packed = nullptr)
      : plain(std::move(values)), packed(std::move(as_packed)) {}
};

// a [rows, in] W^T -> [rows, out] forward, a [rows, out] W -> [rows, in] for the input's gradient.
// No autograd.
[[nodiscard]] at::Tensor product(const at::Tensor& a, const Weight& weight, Side side);

// The same into `out`, whose type decides.
void product_into(const at::Tensor& out, const at::Tensor& a, const Weight& weight, Side side);

}  // namespace zeroth::kernels
