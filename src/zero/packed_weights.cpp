#include "zero/packed_weights.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "formats/mapped_file.h"
#include "memory/flat_buffer.h"
#include "zero/counted_buffer.h"

#include <ATen/ops/from_blob.h>

namespace zeroth::zero {
namespace {

using kernels::PackedWeight;
using kernels::Packing;
using memory::Purpose;
using models::Parameter;

kernels::MatrixShape shape_of(const Parameter& parameter) {
  return {.out = parameter.value.size(0),
          .in = parameter.value.size(1),
          .dtype = parameter.value.scalar_type()};
}

// A parameter's place in the memory of its unit.
struct Placed {
  Parameter* parameter = nullptr;
  std::int64_t offset = 0;
};

// What of a unit is packed.
struct UnitPlaces {
  std::vector<Placed> places;
  std::int64_t bytes = 0;
};

UnitPlaces places_of(models::Unit& unit, Packing packing) {
  UnitPlaces found;
  for (Parameter& parameter : unit.parameters()) {
    if (!parameter.is_factor || parameter.trainable || parameter.value.dim() != 2) {
      continue;
    }
    if (const std::int64_t bytes = PackedWeight::bytes_for(shape_of(parameter), packing)) {
      found.places.push_back({.parameter = &parameter, .offset = found.bytes});
      found.bytes += bytes;
    }
  }
  return found;
}

// The file's pages are still there for whoever reads them, if from the disk.
void give_back(Parameter& parameter) {
  const at::Tensor file = parameter.stored;
  formats::drop_pages({static_cast<const std::byte*>(file.data_ptr()), file.nbytes()});
  parameter.value = at::from_blob(
      file.data_ptr(), file.sizes(), [file](void*) {}, file.options());  // counted by nobody
}

class Packer {
 public:
  Packer(const PackOptions& options, comm::Communicator& comm, std::shared_ptr<memory::Tally> tally)
      : options_(options), comm_(comm), tally_(std::move(tally)) {}

  void pack(models::UnitList& units) const {
    std::vector<UnitPlaces> found;
    for (const auto& unit : units) {
      found.push_back(places_of(*unit, options_.packing));
    }
    if (options_.share && comm_.size() > 1) {
      pack_shared(found);
      return;
    }
    for (const UnitPlaces& unit : found) {
      if (unit.bytes > 0) {
        pack_unit(unit, own_memory(unit.bytes), {.rank = 0, .size = 1});
      }
    }
  }

 private:
  using Memory = std::shared_ptr<std::byte>;

  void pack_shared(const std::vector<UnitPlaces>& found) const {
    const std::vector<std::int64_t> bytes = most_bytes(found);
    for (std::size_t unit = 0; unit < found.size(); ++unit) {
      if (bytes[unit] > 0) {
        pack_unit(found[unit], shared_memory(bytes[unit]), comm_.on_host());
      }
    }
    comm_.barrier("packed weights");  // now the others' are there too
  }

  // Of each unit. All hosts make buffers of one size, and their processors may differ.
  [[nodiscard]] std::vector<std::int64_t> most_bytes(const std::vector<UnitPlaces>& here) const {
    std::vector<double> own;
    for (const UnitPlaces& unit : here) {
      own.push_back(static_cast<double>(unit.bytes));
    }
    const std::vector<double> all = comm_.gather_values("bytes of packed weights", own);
    std::vector<std::int64_t> most(own.size());
    for (std::size_t i = 0; i < all.size(); ++i) {  // rank after rank
      std::int64_t& of_unit = most[i % most.size()];
      of_unit = std::max(of_unit, static_cast<std::int64_t>(all[i]));
    }
    return most;
  }

  // Each rank packs the parameters whose turn is its own, and reads all.
  void pack_unit(const UnitPlaces& unit, const Memory& memory, comm::HostPlace rank) const {
    std::int64_t turn = 0;
    for (const Placed& place : unit.places) {
      Parameter& parameter = *place.parameter;
      const auto packed = std::make_shared<PackedWeight>(
          shape_of(parameter), options_.packing, Memory(memory, memory.get() + place.offset));
      if (turn++ % rank.size == rank.rank) {
        packed->pack(parameter.value.detach().contiguous());
      }
      parameter.packed = packed;
      if (parameter.is_pure_factor && packed->serves_both() && parameter.stored.defined()) {
        give_back(parameter);
      }
    }
  }

  [[nodiscard]] Memory own_memory(std::int64_t bytes) const {
    const auto buffer = std::make_shared<memory::FlatBuffer>(bytes, Purpose::kWeights, tally_);
    return {buffer, buffer->data()};
  }

  [[nodiscard]] Memory shared_memory(std::int64_t bytes) const {
    const std::int64_t ranks = comm_.on_host().size;
    const auto buffer = std::make_shared<CountedBuffer>(
        comm_.allocate_shared(bytes), (bytes + ranks - 1) / ranks, Purpose::kWeights, tally_);
    return {buffer, buffer->data()};
  }

  PackOptions options_;
  comm::Communicator& comm_;
  std::shared_ptr<memory::Tally> tally_;
};

}  // namespace

void pack_frozen(models::UnitList& units,
                 const PackOptions& options,
                 comm::Communicator& comm,
                 const std::shared_ptr<memory::Tally>& tally) {
  if (options.packing != Packing::kNone) {
    Packer(options, comm, tally).pack(units);
  }
}

}  // namespace zeroth::zero
