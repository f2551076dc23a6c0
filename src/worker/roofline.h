#pragma once

#include <vector>

#include "shapes/products.h"

#include <c10/core/ScalarType.h>

namespace zeroth::worker {

// Seconds that products take by themselves on this rank's threads.
struct ProductSeconds {
  double cold = 0;  // each with operands of its own, which have left the caches: the roofline
  double hot = 0;   // the same product again and again
};

// Each in the best of the layouts that this processor's products have. Medians of several rounds.
[[nodiscard]] ProductSeconds time_products(const std::vector<shapes::ProductShape>& products,
                                           at::ScalarType dtype);

}  // namespace zeroth::worker
