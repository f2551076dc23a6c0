#include "worker/roofline.h"

#include <functional>
#include <map>
#include <utility>

#include "base/timing.h"
#include "kernels/product.h"

#include <ATen/ops/full.h>

namespace zeroth::worker {
namespace {

using shapes::ProductOf;
using shapes::ProductShape;

constexpr int kRounds = 5;

double seconds_of(const std::function<void()>& work) {
  const Clock::time_point begin = Clock::now();
  work();
  return seconds_since(begin);
}

// Weights as they lie in a linear: [out, in], read as they are or turned round.
struct Operands {
  at::Tensor left, right;
};

Operands operands_of(const ProductShape& product, at::ScalarType dtype) {
  constexpr double kSomeValue = 0.01;
  const at::TensorOptions options(dtype);
  const at::Tensor left = product.of == ProductOf::kWeightGradient
                              ? at::full({product.inner, product.rows}, kSomeValue, options).t()
                              : at::full({product.rows, product.inner}, kSomeValue, options);
  const at::Tensor right = product.of == ProductOf::kForward
                               ? at::full({product.columns, product.inner}, kSomeValue, options).t()
                               : at::full({product.inner, product.columns}, kSomeValue, options);
  return {left, right};
}

// Operands of its own for every product, as far as a real update has them: the same shapes of other
// layers read other weights.
double cold_seconds(const std::vector<ProductShape>& products, at::ScalarType dtype) {
  std::vector<Operands> operands;
  operands.reserve(products.size());
  for (const ProductShape& product : products) {
    operands.push_back(operands_of(product, dtype));
  }
  std::vector<double> rounds;
  for (int round = 0; round < kRounds + 1; ++round) {
    const double seconds = seconds_of([&] {
      for (const Operands& pair : operands) {
        (void)kernels::product(pair.left, pair.right);
      }
    });
    if (round > 0) {  // the first one makes the primitives
      rounds.push_back(seconds);
    }
  }
  return median(std::move(rounds));
}

double hot_seconds(const std::vector<ProductShape>& products, at::ScalarType dtype) {
  std::map<ProductShape, double> of_shape;
  double sum = 0;
  for (const ProductShape& product : products) {
    if (!of_shape.contains(product)) {
      const Operands pair = operands_of(product, dtype);
      (void)kernels::product(pair.left, pair.right);
      std::vector<double> rounds;
      for (int round = 0; round < kRounds; ++round) {
        rounds.push_back(seconds_of([&] { (void)kernels::product(pair.left, pair.right); }));
      }
      of_shape.emplace(product, median(std::move(rounds)));
    }
    sum += of_shape.at(product);
  }
  return sum;
}

}  // namespace

ProductSeconds time_products(const std::vector<ProductShape>& products, at::ScalarType dtype) {
  return {.cold = cold_seconds(products, dtype), .hot = hot_seconds(products, dtype)};
}

}  // namespace zeroth::worker
