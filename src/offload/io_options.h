#pragma once

#include <cstdint>

namespace zeroth::offload {

// How bytes move between files and memory.
struct IoOptions {
  std::int64_t block_bytes = std::int64_t{1} << 20;  // of one request to the system
  std::int64_t depth = 128;                          // io_uring: requests on their way at one time
  std::int64_t threads = 4;                          // the pool's
  bool submits_singly = false;                       // io_uring: a system call for each request
  bool refills = true;  // io_uring: hands requests over while others are on their way

  friend bool operator==(const IoOptions&, const IoOptions&) = default;
};

}  // namespace zeroth::offload
