#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"

namespace zeroth::comm {

// Every rank's text at every rank, in rank order. Collective.
[[nodiscard]] std::vector<std::string> gather_texts(Communicator& comm,
                                                    const std::string& label,
                                                    const std::string& text);

}  // namespace zeroth::comm
