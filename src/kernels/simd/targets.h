#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zeroth::kernels::simd {

// The kinds of processor that vector code is compiled for and this one can stand in for.
struct Target {
  std::int64_t bit;
  std::string name;
};

[[nodiscard]] std::vector<Target> targets();

// For tests: what runs while it lives.
class TargetScope {
 public:
  explicit TargetScope(const Target& target);
  TargetScope(const TargetScope&) = delete;
  TargetScope& operator=(const TargetScope&) = delete;
  ~TargetScope();
};

}  // namespace zeroth::kernels::simd
