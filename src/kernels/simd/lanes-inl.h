// Included once for each kind of processor, inside Highway's foreach_target.
#if defined(ZEROTH_KERNELS_SIMD_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ZEROTH_KERNELS_SIMD_LANES_INL_H_
#undef ZEROTH_KERNELS_SIMD_LANES_INL_H_
#else
#define ZEROTH_KERNELS_SIMD_LANES_INL_H_
#endif

#include <cstring>

#include "kernels/simd/storage.h"
#include <hwy/highway.h>

// Rows of fp32, bf16 or fp16 as vectors of fp32, their ends included.
HWY_BEFORE_NAMESPACE();

namespace zeroth::kernels::simd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using U32 = hn::RebindToUnsigned<F32>;
using I32 = hn::RebindToSigned<F32>;
using U16 = hn::Rebind<std::uint16_t, F32>;
using V = hn::Vec<F32>;

enum class Bf16 : std::uint16_t {};
enum class Fp16 : std::uint16_t {};

HWY_INLINE V all(float value) {
  return hn::Set(F32(), value);
}

HWY_INLINE auto not_a_number(V x) {
  return hn::Ne(x, x);
}

// ---- Types of 16 bits

HWY_INLINE V from_bf16(hn::Vec<U16> bits) {
  return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(U32(), bits)));
}

HWY_INLINE hn::Vec<U16> to_bf16(V x) {
  const U32 u32;
  const auto bits = hn::BitCast(u32, x);
  const auto last_kept = hn::And(hn::ShiftRight<16>(bits), hn::Set(u32, 1U));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(last_kept, hn::Set(u32, 0x7FFFU))));
  const auto kept_nan =
      hn::IfThenElse(hn::RebindMask(u32, not_a_number(x)), hn::Set(u32, 0x7FC0U), rounded);
  return hn::DemoteTo(U16(), hn::BitCast(I32(), kept_nan));
}

#if HWY_TARGET <= HWY_AVX2

HWY_INLINE V from_fp16(hn::Vec<U16> bits) {
  return hn::PromoteTo(F32(), hn::BitCast(hn::Rebind<hwy::float16_t, F32>(), bits));
}

HWY_INLINE hn::Vec<U16> to_fp16(V x) {
  return hn::BitCast(U16(), hn::DemoteTo(hn::Rebind<hwy::float16_t, F32>(), x));
}

#else  // no F16C; Highway's own way there truncates and knows no infinity

// The exponent is moved by a multiplication, which leaves what is subnormal in fp16 to a second
// way.
HWY_INLINE V from_fp16(hn::Vec<U16> bits) {
  const F32 f32;
  const U32 u32;
  const auto word = hn::ShiftLeft<16>(hn::PromoteTo(u32, bits));
  const auto sign = hn::And(word, hn::Set(u32, 0x80000000U));
  const auto magnitude = hn::Add(word, word);
  const V normal =
      hn::Mul(hn::BitCast(f32, hn::Add(hn::ShiftRight<4>(magnitude), hn::Set(u32, 0xE0U << 23U))),
              all(0x1.0p-112F));
  const V subnormal =
      hn::Sub(hn::BitCast(f32, hn::Or(hn::ShiftRight<17>(magnitude), hn::Set(u32, 126U << 23U))),
              all(0.5F));
  const auto is_subnormal =
      hn::Lt(hn::BitCast(I32(), hn::ShiftRight<1>(magnitude)), hn::Set(I32(), 1 << 26));
  const V value = hn::IfThenElse(hn::RebindMask(f32, is_subnormal), subnormal, normal);
  return hn::Or(hn::BitCast(f32, sign), value);
}

// Adding a power of two of the right size makes the processor round at fp16's last bit.
HWY_INLINE hn::Vec<U16> to_fp16(V x) {
  const F32 f32;
  const U32 u32;
  const auto word = hn::BitCast(u32, x);
  const auto sign = hn::ShiftRight<16>(hn::And(word, hn::Set(u32, 0x80000000U)));
  const auto exponent = hn::And(word, hn::Set(u32, 0x7F800000U));
  const auto bias = hn::Max(exponent, hn::Set(u32, 0x38800000U));
  const V scaled = hn::Mul(hn::Mul(hn::Abs(x), all(0x1.0p+112F)), all(0x1.0p-110F));
  const V base = hn::Add(hn::BitCast(f32, hn::Add(bias, hn::Set(u32, 0x07800000U))), scaled);
  const auto bits = hn::BitCast(u32, base);
  const auto value = hn::Add(hn::And(hn::ShiftRight<13>(bits), hn::Set(u32, 0x7C00U)),
                             hn::And(bits, hn::Set(u32, 0x0FFFU)));
  const auto kept_nan =
      hn::IfThenElse(hn::RebindMask(u32, not_a_number(x)), hn::Set(u32, 0x7E00U), value);
  return hn::DemoteTo(U16(), hn::BitCast(I32(), hn::Or(sign, kept_nan)));
}

#endif

// ---- One vector in memory

HWY_INLINE V load(const float* from) {
  return hn::LoadU(F32(), from);
}

HWY_INLINE V load(const Bf16* from) {
  return from_bf16(hn::LoadU(U16(), reinterpret_cast<const std::uint16_t*>(from)));
}

HWY_INLINE V load(const Fp16* from) {
  return from_fp16(hn::LoadU(U16(), reinterpret_cast<const std::uint16_t*>(from)));
}

HWY_INLINE void store(V x, float* to) {
  hn::StoreU(x, F32(), to);
}

HWY_INLINE void store(V x, Bf16* to) {
  hn::StoreU(to_bf16(x), U16(), reinterpret_cast<std::uint16_t*>(to));
}

HWY_INLINE void store(V x, Fp16* to) {
  hn::StoreU(to_fp16(x), U16(), reinterpret_cast<std::uint16_t*>(to));
}

// x as it comes back from memory of type T.
template <typename T>
HWY_INLINE V rounded(V x) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return x;
  } else if constexpr (std::is_same_v<T, Bf16>) {
    return from_bf16(to_bf16(x));
  } else {
    return from_fp16(to_fp16(x));
  }
}

// ---- Rows

// How a row's vectors are read and written where all lanes lie in the row, and at its end.
struct Whole {
  template <typename T>
  HWY_INLINE V load(const T* from) const {
    return HWY_NAMESPACE::load(from);
  }

  template <typename T>
  HWY_INLINE void store(V x, T* to) const {
    HWY_NAMESPACE::store(x, to);
  }

  // What stands for a lane that is not in the row.
  HWY_INLINE V or_else(V x, float /*outside*/) const { return x; }
};

struct Part {
  std::size_t count;

  template <typename T>
  HWY_INLINE V load(const T* from) const {
    HWY_ALIGN T lanes[hn::MaxLanes(F32())] = {};
    std::memcpy(lanes, from, count * sizeof(T));
    return HWY_NAMESPACE::load(lanes);
  }

  template <typename T>
  HWY_INLINE void store(V x, T* to) const {
    HWY_ALIGN T lanes[hn::MaxLanes(F32())];
    HWY_NAMESPACE::store(x, lanes);
    std::memcpy(to, lanes, count * sizeof(T));
  }

  HWY_INLINE V or_else(V x, float outside) const {
    return hn::IfThenElse(hn::FirstN(F32(), count), x, all(outside));
  }
};

// Calls visit(place, Whole or Part) for the vectors of `count` numbers.
template <typename Visit>
HWY_INLINE void for_each_vector(std::size_t count, const Visit& visit) {
  const std::size_t lanes = hn::Lanes(F32());
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    visit(i, Whole());
  }
  if (i < count) {
    visit(i, Part{count - i});
  }
}

HWY_INLINE float sum_of(V x) {
  return hn::GetLane(hn::SumOfLanes(F32(), x));
}

HWY_INLINE float max_of(V x) {
  return hn::GetLane(hn::MaxOfLanes(F32(), x));
}

// Calls run(T()) with the type of that storage.
template <typename Run>
HWY_INLINE void with_type(Storage storage, const Run& run) {
  switch (storage) {
    case Storage::kFp32:
      return run(float());
    case Storage::kBf16:
      return run(Bf16());
    case Storage::kFp16:
      return run(Fp16());
  }
}

}  // namespace zeroth::kernels::simd::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#endif  // for each kind of processor
