#include "kernels/simd/targets.h"

#include <hwy/highway.h>

namespace zeroth::kernels::simd {

std::vector<Target> targets() {
  std::vector<Target> result;
  for (const std::int64_t bit : hwy::SupportedAndGeneratedTargets()) {
    result.push_back({bit, hwy::TargetName(bit)});
  }
  return result;
}

TargetScope::TargetScope(const Target& target) {
  hwy::GetChosenTarget().Update(target.bit);
}

TargetScope::~TargetScope() {
  hwy::GetChosenTarget().DeInit();  // chosen anew by the next call
}

}  // namespace zeroth::kernels::simd
