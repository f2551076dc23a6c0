#include "optim/optimizer.h"

#include "base/check.h"

namespace zeroth::optim {

bool move_alike(const Segment& a, const Segment& b) noexcept {
  return a.decays == b.decays && a.rate_factor == b.rate_factor && a.weight_decay == b.weight_decay;
}

void Optimizer::measure(const ShardView&, const UpdateStep&, std::span<Norms>) const {
  ZEROTH_CHECK(false, "this optimizer uses no norms: update() alone does it all");
}

double Optimizer::ratio(const Norms&) const {
  return 1.0;
}

}  // namespace zeroth::optim
