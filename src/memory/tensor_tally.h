#pragma once

#include <memory>

#include "memory/tally.h"

namespace zeroth::memory {

// While it lives, the tensors that this thread allocates are counted in `tally` for `purpose`, each
// until it is freed, wherever that is. Scopes nest: the innermost counts.
class TensorScope {
 public:
  TensorScope(std::shared_ptr<Tally> tally, Purpose purpose);  // no tally: they are not counted
  ~TensorScope();
  TensorScope(const TensorScope&) = delete;
  TensorScope& operator=(const TensorScope&) = delete;

 private:
  std::shared_ptr<Tally> outer_tally_;
  Purpose outer_purpose_;
};

}  // namespace zeroth::memory
