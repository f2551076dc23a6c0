#include "worker/roofline.h"

#include <functional>
#include <map>
#include <utility>

#include "base/timing.h"
#include "memory/flat_buffer.h"

#include <ATen/ops/full.h>

namespace zeroth::worker {
namespace {

using kernels::Packing;
using kernels::Side;
using shapes::ProductOf;
using shapes::ProductShape;

constexpr int kRounds = 5;

double seconds_of(const std::function<void()>& work) {
  const Clock::time_point begin = Clock::now();
  work();
  return seconds_since(begin);
}

// A product's operands, ready to be multiplied.
class Operands {
 public:
  Operands(const ProductShape& product, at::ScalarType dtype, Packing packing)
      : left_(product.of == ProductOf::kWeightGradient
                  ? filled(product.inner, product.rows, dtype).t()
                  : filled(product.rows, product.inner, dtype)),
        right_(product.of == ProductOf::kForward ? filled(product.columns, product.inner, dtype)
                                                 : filled(product.inner, product.columns, dtype)),
        side_(product.of == ProductOf::kForward ? Side::kForward : Side::kInputGradient) {
    const bool packs =
        packing == Packing::kBoth || (packing == Packing::kForward && side_ == Side::kForward);
    if (product.frozen && packs) {
      right_.packed = packed(dtype);
    }
  }

  void multiply() const { (void)kernels::product(left_, right_, side_); }

 private:
  static at::Tensor filled(std::int64_t rows, std::int64_t columns, at::ScalarType dtype) {
    constexpr double kSomeValue = 0.01;
    return at::full({rows, columns}, kSomeValue, at::TensorOptions(dtype));
  }

  [[nodiscard]] kernels::PackedPtr packed(at::ScalarType dtype) const {
    const kernels::MatrixShape shape{right_.plain.size(0), right_.plain.size(1), dtype};
    const Packing packing = side_ == Side::kForward ? Packing::kForward : Packing::kBoth;
    const std::int64_t bytes = kernels::PackedWeight::bytes_for(shape, packing);
    if (bytes == 0) {
      return nullptr;
    }
    const auto memory = std::make_shared<memory::FlatBuffer>(
        bytes, memory::Purpose::kBuffers, std::make_shared<memory::Tally>());
    const auto result = std::make_shared<kernels::PackedWeight>(
        shape, packing, std::shared_ptr<std::byte>(memory, memory->data()));
    result->pack(right_.plain);
    return result;
  }

  at::Tensor left_;
  kernels::Weight right_;  // as it lies in a linear: [out, in]
  Side side_;
};

// Operands of its own for every product, as far as a real update has them: the same shapes of other
// layers read other weights.
double cold_seconds(const std::vector<ProductShape>& products,
                    at::ScalarType dtype,
                    Packing packing) {
  std::vector<Operands> operands;
  operands.reserve(products.size());
  for (const ProductShape& product : products) {
    operands.emplace_back(product, dtype, packing);
  }
  std::vector<double> rounds;
  for (int round = 0; round < kRounds + 1; ++round) {
    const double seconds = seconds_of([&] {
      for (const Operands& pair : operands) {
        pair.multiply();
      }
    });
    if (round > 0) {  // the first one makes the primitives
      rounds.push_back(seconds);
    }
  }
  return median(std::move(rounds));
}

double hot_seconds(const std::vector<ProductShape>& products,
                   at::ScalarType dtype,
                   Packing packing) {
  std::map<ProductShape, double> of_shape;
  double sum = 0;
  for (const ProductShape& product : products) {
    if (!of_shape.contains(product)) {
      const Operands pair(product, dtype, packing);
      pair.multiply();
      std::vector<double> rounds;
      for (int round = 0; round < kRounds; ++round) {
        rounds.push_back(seconds_of([&] { pair.multiply(); }));
      }
      of_shape.emplace(product, median(std::move(rounds)));
    }
    sum += of_shape.at(product);
  }
  return sum;
}

}  // namespace

ProductSeconds time_products(const std::vector<ProductShape>& products,
                             at::ScalarType dtype,
                             Packing packing) {
  return {.cold = cold_seconds(products, dtype, packing),
          .hot = hot_seconds(products, dtype, packing)};
}

}  // namespace zeroth::worker
