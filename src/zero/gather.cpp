#include "zero/gather.h"

#include <cstring>

#include <ATen/ops/empty.h>

namespace zeroth::zero {

at::Tensor gather_floats(comm::Communicator& comm,
                         const std::string& label,
                         std::span<const float> own) {
  const at::Tensor full =
      at::empty({static_cast<std::int64_t>(own.size()) * comm.size()}, at::kFloat);
  const comm::BufferPtr buffer = comm::make_private_buffer(full.nbytes());
  comm.all_gather(label, std::as_bytes(own), buffer).wait();
  std::memcpy(full.data_ptr(), buffer->data(), full.nbytes());
  return full;
}

}  // namespace zeroth::zero
