#pragma once

#include <cstddef>
#include <cstdint>

namespace zeroth::kernels::simd {

// How numbers lie in memory; they are computed with in fp32 and rounded to nearest even.
enum class Storage : std::uint8_t { kFp32, kBf16, kFp16 };

}  // namespace zeroth::kernels::simd
