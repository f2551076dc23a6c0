#pragma once

#include "plan/bytes.h"

namespace zeroth::cli {

// What programs on this machine may use together: its memory, or less where a control group bounds
// it (containers, batch systems).
[[nodiscard]] plan::Bytes machine_memory();

}  // namespace zeroth::cli
