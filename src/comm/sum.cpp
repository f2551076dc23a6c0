#include "comm/sum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace zeroth::comm {
namespace {

constexpr std::size_t kBlock = 2048;  // floats; a block of sums stays in the first-level cache

#if defined(__x86_64__)
// 16-byte aligned destination, multiple of 64 bytes. Stores go past the cache: nothing is read for
// them first, which halves the traffic of a large copy.
void stream(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 64) {
    const auto* source = reinterpret_cast<const __m128i*>(from + i);
    auto* target = reinterpret_cast<__m128i*>(to + i);
    const __m128i a = _mm_loadu_si128(source);
    const __m128i b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2);
    const __m128i d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
}

void end_of_stream() {
  _mm_sfence();  // before a peer is told that the data is there
}
#else
void stream(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

void end_of_stream() {
}
#endif

void stream_unaligned(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t head =
      std::min(bytes, static_cast<std::size_t>(-reinterpret_cast<std::uintptr_t>(to) & 63U));
  std::memcpy(to, from, head);
  const std::size_t middle = (bytes - head) / 64 * 64;
  stream(to + head, from + head, middle);
  std::memcpy(to + head + middle, from + head + middle, bytes - head - middle);
}

const float* floats_at(const std::byte* source, std::size_t begin) {
  return reinterpret_cast<const float*>(source) + begin;
}

// The sum of one block over all sources, in order.
void sum_block(std::span<const std::byte* const> sources,
               std::size_t begin,
               std::size_t count,
               float* __restrict sum) {
  if (sources.size() == 1) {
    std::memcpy(sum, floats_at(sources[0], begin), count * sizeof(float));
    return;
  }
  const float* __restrict first = floats_at(sources[0], begin);
  const float* __restrict second = floats_at(sources[1], begin);
  for (std::size_t i = 0; i < count; ++i) {
    sum[i] = first[i] + second[i];
  }
  for (std::size_t s = 2; s < sources.size(); ++s) {
    const float* __restrict next = floats_at(sources[s], begin);
    for (std::size_t i = 0; i < count; ++i) {
      sum[i] += next[i];
    }
  }
}

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// IEEE 754 binary16: subnormals are exact in fp32, infinities and NaN stay what they are.
float from_fp16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t rest = bits & 0x7FFFU;
  // As if the exponent had fp32's bias, then corrected by a product, which also normalises.
  float value = std::bit_cast<float>(rest << 13) * 0x1p112F;
  if (rest >= 0x7C00U) {
    value = std::bit_cast<float>((rest << 13) | 0x7F800000U);
  }
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
}

template <float (*kWiden)(std::uint16_t)>
void sum_narrow_block(std::span<const std::byte* const> sources,
                      std::size_t begin,
                      std::size_t count,
                      float* __restrict sum) {
  std::fill_n(sum, count, 0.0F);
  for (const std::byte* source : sources) {
    const auto* __restrict values = reinterpret_cast<const std::uint16_t*>(source) + begin;
    for (std::size_t i = 0; i < count; ++i) {
      sum[i] += kWiden(values[i]);
    }
  }
}

using SumBlock = void (*)(std::span<const std::byte* const>, std::size_t, std::size_t, float*);

SumBlock sum_block_of(NumberType type) {
  switch (type) {
    case NumberType::kBFloat16:
      return sum_narrow_block<from_bf16>;
    case NumberType::kFloat16:
      return sum_narrow_block<from_fp16>;
    case NumberType::kFloat32:
      break;
  }
  return sum_block;
}

void add_block(float* __restrict output, const float* __restrict sum, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    output[i] += sum[i];
  }
}

}  // namespace

void sum_in_order(std::span<const std::byte* const> sources,
                  std::span<float> output,
                  bool accumulate,
                  NumberType type) {
  const SumBlock sum_of = sum_block_of(type);
  const bool large = output.size_bytes() >= kStreamBytes;
  alignas(64) std::array<float, kBlock> sum;
  for (std::size_t begin = 0; begin < output.size(); begin += kBlock) {
    const std::size_t count = std::min(kBlock, output.size() - begin);
    float* out = output.data() + begin;
    sum_of(sources, begin, count, sum.data());
    if (accumulate) {
      add_block(out, sum.data(), count);
    } else if (large) {
      stream_unaligned(reinterpret_cast<std::byte*>(out),
                       reinterpret_cast<const std::byte*>(sum.data()),
                       count * sizeof(float));
    } else {
      std::memcpy(out, sum.data(), count * sizeof(float));
    }
  }
  end_of_stream();
}

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes, std::size_t total_bytes) {
  if (to == from || bytes == 0) {
    return;
  }
  if (total_bytes < kStreamBytes) {
    std::memcpy(to, from, bytes);
    return;
  }
  stream_unaligned(to, from, bytes);
  end_of_stream();
}

}  // namespace zeroth::comm
