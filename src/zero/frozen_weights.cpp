#include "zero/frozen_weights.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "memory/tensor_tally.h"
#include "shard/flat_layout.h"
#include "zero/counted_buffer.h"

#include <ATen/ops/from_blob.h>

namespace zeroth::zero {
namespace {

using memory::Purpose;
using models::Parameter;
using shard::Range;

constexpr std::int64_t kAlignment = 64;  // bytes: where a converted parameter begins

// Whether forward can read it where it lies.
bool is_ready(const at::Tensor& stored, at::ScalarType dtype) {
  const auto address = reinterpret_cast<std::uintptr_t>(stored.data_ptr());
  return stored.scalar_type() == dtype && address % c10::elementSize(dtype) == 0;
}

// Not of this process alone, as a merged weight is.
bool is_mapped(const at::Tensor& stored) {
  return !stored.storage().resizable();
}

// A parameter's elements in the buffer of its unit.
struct InBuffer {
  Parameter* parameter = nullptr;
  Range range;
};

class Holder {
 public:
  Holder(const FrozenOptions& options,
         comm::Communicator& comm,
         std::shared_ptr<memory::Tally> tally)
      : options_(options),
        comm_(comm),
        tally_(std::move(tally)),
        width_(static_cast<std::int64_t>(c10::elementSize(options.dtype))) {}

  void hold(models::Unit& unit) const {
    std::vector<Parameter*> to_convert;
    for (Parameter& parameter : unit.parameters()) {
      if (parameter.trainable || parameter.value.defined()) {
        continue;
      }
      const bool whole_here = comm_.size() == 1 || is_mapped(parameter.stored);
      if (options_.share && whole_here && is_ready(parameter.stored, options_.dtype)) {
        borrow(parameter);
      } else if (options_.share && comm_.size() > 1) {
        to_convert.push_back(&parameter);
      } else {
        parameter.materialize(options_.dtype);
      }
    }
    if (!to_convert.empty()) {
      convert(unit.name(), to_convert);
    }
  }

 private:
  // What counts this rank's part, and keeps the buffer, for as long as a tensor looks at it.
  using Shared = std::shared_ptr<const CountedBuffer>;

  [[nodiscard]] Shared shared(comm::BufferPtr buffer, std::int64_t bytes) const {
    const std::int64_t ranks = comm_.on_host().size;
    return std::make_shared<const CountedBuffer>(
        std::move(buffer), (bytes + ranks - 1) / ranks, Purpose::kWeights, tally_);
  }

  void borrow(Parameter& parameter) const {
    const at::Tensor file = parameter.stored;
    if (!is_mapped(file)) {
      parameter.stored.reset();
    }
    const Shared counted = shared(nullptr, file.numel() * width_);
    parameter.value = at::from_blob(
        file.data_ptr(), file.sizes(), [file, counted](void*) {}, file.options());
  }

  // A unit's parameters end to end in one buffer of the host. All hosts make buffers of one size,
  // and each rank's part is one of its host's.
  void convert(const std::string& unit, const std::vector<Parameter*>& parameters) const {
    const std::vector<InBuffer> places = places_of(parameters);
    const std::int64_t numel = places.back().range.end;
    const Shared counted = shared(comm_.allocate_shared(numel * width_), numel * width_);
    const comm::HostPlace rank = comm_.on_host();
    const Range own{.begin = numel * rank.rank / rank.size,
                    .end = numel * (rank.rank + 1) / rank.size};
    for (const InBuffer& place : places) {
      fill(place, own, counted);
    }
    comm_.barrier("frozen weights of " + unit);  // now the others' parts are there too
    for (const InBuffer& place : places) {
      point(place, counted);
    }
  }

  [[nodiscard]] std::vector<InBuffer> places_of(const std::vector<Parameter*>& parameters) const {
    const std::int64_t step = kAlignment / width_;
    std::vector<InBuffer> places;
    std::int64_t begin = 0;
    for (Parameter* parameter : parameters) {
      const std::int64_t end = begin + parameter->stored.numel();
      places.push_back({.parameter = parameter, .range = {.begin = begin, .end = end}});
      begin = (end + step - 1) / step * step;
    }
    return places;
  }

  // The part of a parameter that falls into `own`.
  void fill(const InBuffer& place, Range own, const Shared& buffer) const {
    const Range part = shard::intersect(place.range, own);
    if (part.size() > 0) {
      view(buffer, part)
          .copy_(place.parameter->stored.reshape({-1}).narrow(
              0, part.begin - place.range.begin, part.size()));
    }
  }

  void point(const InBuffer& place, const Shared& buffer) const {
    place.parameter->value = view(buffer, place.range).view(place.parameter->stored.sizes());
    place.parameter->stored.reset();
  }

  [[nodiscard]] at::Tensor view(const Shared& buffer, Range part) const {
    return at::from_blob(
        buffer->data() + part.begin * width_,
        {part.size()},
        [buffer](void*) {},
        at::TensorOptions(options_.dtype));
  }

  FrozenOptions options_;
  comm::Communicator& comm_;
  std::shared_ptr<memory::Tally> tally_;
  std::int64_t width_;
};

}  // namespace

void hold_frozen(models::UnitList& units,
                 const FrozenOptions& options,
                 comm::Communicator& comm,
                 const std::shared_ptr<memory::Tally>& tally) {
  const memory::TensorScope counted(tally, Purpose::kWeights);
  const Holder holder(options, comm, tally);
  for (const auto& unit : units) {
    holder.hold(*unit);
  }
}

}  // namespace zeroth::zero
