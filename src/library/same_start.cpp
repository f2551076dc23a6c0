#include "library/same_start.h"

#include <span>

#include <fmt/format.h>

#include <c10/core/GradMode.h>

namespace zeroth::library {
namespace {

void send_first(comm::Communicator& comm, const std::string& name, const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.numel() == 0) {
    return;
  }
  const at::Tensor value = tensor.detach();
  const at::Tensor dense = value.contiguous();
  comm.broadcast(fmt::format("first value of {}", name),
                 {static_cast<std::byte*>(dense.data_ptr()), dense.nbytes()},
                 /*root=*/0)
      .wait();
  if (!dense.is_same(value) && comm.rank() != 0) {
    value.copy_(dense);
  }
}

}  // namespace

void start_alike(comm::Communicator& comm, const Model& model) {
  if (comm.size() == 1) {
    return;
  }
  const c10::NoGradGuard no_grad;
  comm.note("making the ranks' models alike");
  for (const Unit& unit : model.units) {
    for (const Parameter& parameter : unit.parameters) {
      send_first(comm, parameter.name, parameter.value);
    }
    for (std::size_t index = 0; index < unit.buffers.size(); ++index) {
      send_first(comm, fmt::format("buffer {} of unit {}", index, unit.name), unit.buffers[index]);
    }
  }
}

}  // namespace zeroth::library
