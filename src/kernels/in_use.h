#pragma once

#include <string>

#include <c10/core/ScalarType.h>

namespace zeroth::kernels {

// Which kernels a run in `dtype` (fp32, bf16 or fp16) has on this processor, and why, for people:
// "fast (AVX-512); bf16 products by oneDNN (AVX-512 bf16)". Follows choice(), and what
// ONEDNN_MAX_CPU_ISA leaves.
[[nodiscard]] std::string kernels_in_use(c10::ScalarType dtype);

}  // namespace zeroth::kernels
