#pragma once

#include <cstdint>

// What the kernel says of this process.
namespace zeroth::memory {

// The peak resident memory so far, the program itself and pages that others share in it.
[[nodiscard]] std::int64_t peak_resident_bytes();

// The proportional set size now of all but the program's and its libraries' files: pages that
// several processes share count in parts (/proc/self/smaps).
[[nodiscard]] std::int64_t proportional_set_bytes();

// Pages that were touched for the first time so far, or for the first time since they were given
// back: each costs a visit to the kernel.
[[nodiscard]] std::int64_t minor_page_faults();

}  // namespace zeroth::memory
