#pragma once

#include <cstddef>

#include "kernels/simd/storage.h"

namespace zeroth::kernels::simd {

enum class Gate : std::uint8_t { kSilu, kGelu, kGeluTanh };

// gate, up and what comes of them: numbers one behind the other.
struct Gated {
  Storage storage = Storage::kFp32;
  Gate activation = Gate::kSilu;
  const void* gate = nullptr;
  const void* up = nullptr;
};

// out = activation(gate) * up, of the numbers [first, last).
void gated(const Gated& work, void* out, std::size_t first, std::size_t last);
// The gradients of both from that of out.
void gated_backward(const Gated& work,
                    const void* grad,
                    void* grad_gate,
                    void* grad_up,
                    std::size_t first,
                    std::size_t last);

}  // namespace zeroth::kernels::simd
