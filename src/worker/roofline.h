#pragma once

#include <vector>

#include "kernels/packed_weight.h"
#include "shapes/products.h"

#include <c10/core/ScalarType.h>

namespace zeroth::worker {

// Seconds that products take by themselves on this rank's threads.
struct ProductSeconds {
  double cold = 0;  // each with operands of its own, which have left the caches: the roofline
  double hot = 0;   // the same product again and again
};

// Frozen weights as the run packs them, all others as they lie. Medians of several rounds.
[[nodiscard]] ProductSeconds time_products(const std::vector<shapes::ProductShape>& products,
                                           at::ScalarType dtype,
                                           kernels::Packing packing);

}  // namespace zeroth::worker
