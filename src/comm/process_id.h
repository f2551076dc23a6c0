#pragma once

#include <cstdint>

// Telling whether a process still runs.
namespace zeroth::comm {

// When a process started, in clock ticks since boot: with the pid it names one process for good.
// 0 if there is no such process, or it has ended and only waits to be reaped.
[[nodiscard]] std::uint64_t process_start_time(std::int32_t pid);

}  // namespace zeroth::comm
