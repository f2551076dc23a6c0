#pragma once

#include <cstdint>

namespace zeroth {

// What programs on this machine may use together: its memory, or less where a control group bounds
// it (containers, batch systems).
[[nodiscard]] std::int64_t machine_memory();

// What of it is free now, or would be at once: page cache counts as free.
[[nodiscard]] std::int64_t available_memory();

}  // namespace zeroth
