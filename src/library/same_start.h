#pragma once

#include "comm/communicator.h"

#include "zeroth/model.h"

namespace zeroth::library {

// Every rank starts from rank 0's parameters and buffers. Ranks whose models differ get an Error
// that names the tensor. Collective.
void start_alike(comm::Communicator& comm, const Model& model);

}  // namespace zeroth::library
