// Included once for each kind of processor, inside Highway's foreach_target.
#if defined(ZEROTH_KERNELS_SIMD_FUNCTIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ZEROTH_KERNELS_SIMD_FUNCTIONS_INL_H_
#undef ZEROTH_KERNELS_SIMD_FUNCTIONS_INL_H_
#else
#define ZEROTH_KERNELS_SIMD_FUNCTIONS_INL_H_
#endif

#include "kernels/simd/lanes-inl.h"

// exp, tanh and erf of fp32 with a relative error of about 1e-7; what is not a number stays so.
HWY_BEFORE_NAMESPACE();

namespace zeroth::kernels::simd::HWY_NAMESPACE {

template <typename... More>
HWY_INLINE V polynomial(V x, V sum, More... lower) {
  ((sum = hn::MulAdd(sum, x, all(lower))), ...);
  return sum;
}

// 2^n for whole n.
HWY_INLINE V power_of_two(hn::Vec<I32> n) {
  return hn::BitCast(F32(), hn::ShiftLeft<23>(hn::Add(n, hn::Set(I32(), 127))));
}

// For x that is at most 88: beyond it no exponent is left. Cody and Waite's reduction: x = n ln 2 +
// r with |r| < 0.35, ln 2 in two parts of which the first times n is exact; then the polynomial of
// Cephes' expf.
HWY_INLINE V exp_of_negative(V x) {
  const auto n = hn::NearestInt(hn::Mul(x, all(1.44269504088896341F)));
  const V whole = hn::ConvertTo(F32(), n);
  const V r =
      hn::NegMulAdd(whole, all(-2.12194440e-4F), hn::NegMulAdd(whole, all(0.693359375F), x));
  const V p = polynomial(r,
                         all(1.9875691500e-4F),
                         1.3981999507e-3F,
                         8.3334519073e-3F,
                         4.1665795894e-2F,
                         1.6666665459e-1F,
                         5.0000001201e-1F);
  const V mantissa = hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), all(1));
  // In two steps, since 2^n itself may be less than the smallest normal number.
  const auto half = hn::ShiftRight<1>(n);
  const V y = hn::Mul(hn::Mul(mantissa, power_of_two(half)), power_of_two(hn::Sub(n, half)));
  return hn::IfThenZeroElse(hn::Lt(x, all(-104)), y);
}

// Near 0 the polynomial of Cephes' tanhf; elsewhere (1 - e) / (1 + e) with e = exp(-2 |x|).
HWY_INLINE V tanh_of(V x) {
  const V size = hn::Abs(x);
  const V square = hn::Mul(x, x);
  const V p = polynomial(square,
                         all(-5.70498872745e-3F),
                         2.06390887954e-2F,
                         -5.37397155531e-2F,
                         1.33314422036e-1F,
                         -3.33332819422e-1F);
  const V near = hn::MulAdd(hn::Mul(p, square), x, x);
  const V e = exp_of_negative(hn::Mul(size, all(-2)));
  const V far = hn::CopySign(hn::Div(hn::Sub(all(1), e), hn::Add(all(1), e)), x);
  return hn::IfThenElse(hn::Lt(size, all(0.625F)), near, far);
}

// Two minimax polynomials: of erf(x) / x in x^2 near 0, and of log(erfc |x|) elsewhere.
HWY_INLINE V erf_of(V x) {
  const V size = hn::Abs(x);
  const V square = hn::Mul(x, x);
  const V near = hn::MulAdd(polynomial(square,
                                       all(-5.96761703e-4F),
                                       4.99119423e-3F,
                                       -2.67681349e-2F,
                                       1.12819925e-1F,
                                       -3.76125336e-1F,
                                       1.28379166e-1F),
                            x,
                            x);
  const V p = polynomial(size,
                         all(-1.72853470e-5F),
                         3.83197126e-4F,
                         -3.88396438e-3F,
                         2.42546219e-2F,
                         -1.06777877e-1F,
                         -6.34846687e-1F,
                         -1.28717512e-1F);
  const V rest = exp_of_negative(hn::MulSub(p, size, size));
  const V far = hn::CopySign(hn::Sub(all(1), rest), x);
  // Beyond 4 nothing of the rest is left, and the polynomial does not say so for ever.
  const V bounded = hn::IfThenElse(hn::Gt(size, all(4)), hn::CopySign(all(1), x), far);
  return hn::IfThenElse(hn::Lt(size, all(0.927734375F)), near, bounded);
}

}  // namespace zeroth::kernels::simd::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#endif  // for each kind of processor
