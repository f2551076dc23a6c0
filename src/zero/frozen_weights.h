#pragma once

#include <memory>

#include "comm/communicator.h"
#include "memory/tally.h"
#include "models/unit.h"

#include <c10/core/ScalarType.h>

namespace zeroth::zero {

struct FrozenOptions {
  at::ScalarType dtype = at::kFloat;  // in which units compute
  bool share = true;                  // false: each rank has a copy of its own
};

// Gives the frozen parameters that lie in a model's files (Parameter::stored) the values that
// forward reads. Shared ones are there once for all ranks of a host, whole, at every stage:
//
//   as stored   where the file has the type that computes: the mapped file itself, whose pages the
//               kernel shares and nobody can write
//   converted   else, with several ranks: one copy in memory that they share, of which each rank
//               reads and converts its part; alone: a copy of its own
//
// Each rank counts its part of what is shared. Collective.
void hold_frozen(models::UnitList& units,
                 const FrozenOptions& options,
                 comm::Communicator& comm,
                 const std::shared_ptr<memory::Tally>& tally);

}  // namespace zeroth::zero
