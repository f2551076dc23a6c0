#pragma once

#include <memory>

#include "comm/communicator.h"
#include "kernels/packed_weight.h"
#include "memory/tally.h"
#include "models/unit.h"

namespace zeroth::zero {

struct PackOptions {
  kernels::Packing packing = kernels::Packing::kNone;
  bool share = true;  // false: each rank packs for itself
};

// Packs the frozen factors of all units (Parameter::is_factor), whose values are final; trained
// ones stay as they are. Shared ones are there once for all ranks of a host, of which each packs
// some and counts its part. Where the processor has no layout of its own, nothing is packed.
// The plain values of a pure factor that is packed for both products are not needed any more: where
// they are a mapped file (Parameter::stored), its pages are given back and no longer counted. A
// product that cannot use the packed ones reads the file again.
// Collective; kMemory where the host has no room.
void pack_frozen(models::UnitList& units,
                 const PackOptions& options,
                 comm::Communicator& comm,
                 const std::shared_ptr<memory::Tally>& tally);

}  // namespace zeroth::zero
