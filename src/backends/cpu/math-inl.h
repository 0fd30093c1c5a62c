// exp and the activations on vectors of floats, made of additions, products, fused multiply-adds
// and divisions only, so that every instruction set gives the same bits. Included once per
// instruction set.
#include <hwy/highway.h>

#include "backends/device.h"

#if defined(QUINTET_BACKENDS_CPU_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUINTET_BACKENDS_CPU_MATH_INL_H_
#undef QUINTET_BACKENDS_CPU_MATH_INL_H_
#else
#define QUINTET_BACKENDS_CPU_MATH_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace quintet {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Horner's rule; coefficients from the highest power down.
template <class D, class V>
HWY_INLINE V polynomial(D d, V /*x*/, float c0) {
  return hn::Set(d, c0);
}
template <class D, class V, typename... Rest>
HWY_INLINE V polynomial_from(D d, V x, V sum, float next, Rest... rest) {
  const V more = hn::MulAdd(sum, x, hn::Set(d, next));
  if constexpr (sizeof...(rest) == 0) {
    return more;
  } else {
    return polynomial_from(d, x, more, rest...);
  }
}
template <class D, class V, typename... Rest>
HWY_INLINE V polynomial(D d, V x, float highest, Rest... rest) {
  return polynomial_from(d, x, hn::Set(d, highest), rest...);
}

// e^x within 1.5 ulp for x <= 88.37; 0 below -87.3 (where the result would be subnormal) and for
// -inf; exactly 1 for 0; NaN for NaN. x = n ln 2 + r, e^r = 1 + r + r^2 q(r) with q fitted to
// |r| <= ln(2) / 2 (relative error 4e-9).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_below_limit(D d, V x) {
  const hn::RebindToUnsigned<D> du;
  const V shift = hn::Set(d, 0x1.8p23F);  // adding it rounds to a whole number in the low bits
  const V shifted = hn::MulAdd(x, hn::Set(d, 1.44269504F), shift);
  const V n = hn::Sub(shifted, shift);
  V r = hn::NegMulAdd(n, hn::Set(d, 0x1.62e4p-1F), x);
  r = hn::NegMulAdd(n, hn::Set(d, 1.42860677e-6F), r);
  const V q = polynomial(d, r, 0x1.6a1a68p-10F, 0x1.123fc8p-7F, 0x1.555916p-5F, 0x1.55548ap-3F,
                         0x1.fffffcp-2F);
  const V p = hn::Add(hn::Set(d, 1.0F), hn::MulAdd(hn::Mul(r, r), q, r));
  const V two_to_n = hn::BitCast(
      d, hn::Add(hn::ShiftLeft<23>(hn::BitCast(du, shifted)), hn::Set(du, 0x3F800000U)));
  return hn::IfThenElseZero(hn::Not(hn::Lt(x, hn::Set(d, -87.3F))), hn::Mul(p, two_to_n));
}

// The same, and infinity above 88.37.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp(D d, V x) {
  return hn::IfThenElse(hn::Gt(x, hn::Set(d, 88.37F)), hn::Inf(d), exp_below_limit(d, x));
}

// erfc(|x| / sqrt(2)) with a small relative error everywhere: exp(-x^2 / 2) * P(s) / (1 + 2 t),
// t = |x| / sqrt(2), s = (t - 2) / (t + 2) (the form of Shepherd and Laframboise, 1981).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V erfc_of_scaled(D d, V x) {
  const V one = hn::Set(d, 1.0F);
  const V two = hn::Set(d, 2.0F);
  const V a = hn::Min(hn::Abs(x), hn::Set(d, 20.0F));
  const V t = hn::Mul(a, hn::Set(d, 0.707106781F));
  const V s = hn::Div(hn::Sub(t, two), hn::Add(t, two));
  const V p = polynomial(d, s, 2.77510626e-05F, -3.62024526e-04F, -1.25306088e-03F, 1.27121515e-03F,
                         8.63755494e-03F, -8.04401748e-03F, -5.42048626e-02F, 1.64053097e-01F,
                         -1.66031390e-01F, -9.27638933e-02F, 1.27697837F);
  const V square = hn::Mul(a, a);
  const V rest = hn::MulSub(a, a, square);  // a^2 = square + rest exactly
  const V half = hn::Set(d, 0.5F);
  const V e =
      hn::Mul(exp_below_limit(d, hn::Neg(hn::Mul(square, half))), hn::NegMulAdd(rest, half, one));
  return hn::Div(hn::Mul(e, p), hn::MulAdd(two, t, one));
}

// tanh within 2 ulp: x + x^3 q(x^2) near zero, q fitted to |x| <= 0.625 (relative error 4e-9), and
// 1 - 2 / (e^(2 |x|) + 1) beyond; NaN for NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh(D d, V x) {
  const V one = hn::Set(d, 1.0F);
  const V two = hn::Set(d, 2.0F);
  const V a = hn::Abs(x);
  const V square = hn::Mul(x, x);
  const V q = polynomial(d, square, -0x1.75e1bap-8F, 0x1.522696p-6F, -0x1.b83c5ap-5F,
                         0x1.110726p-3F, -0x1.555532p-2F);
  const V near = hn::MulAdd(hn::Mul(x, square), q, x);
  const V far = hn::Sub(one, hn::Div(two, hn::Add(exp(d, hn::Mul(two, a)), one)));
  return hn::IfThenElse(hn::Lt(a, hn::Set(d, 0.625F)), near, hn::CopySign(far, x));
}

template <Activation kActivation, class D, class V = hn::Vec<D>>
HWY_INLINE V activate(D d, V x) {
  const V one = hn::Set(d, 1.0F);
  if constexpr (kActivation == Activation::kRelu) {
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);
  } else if constexpr (kActivation == Activation::kGeluTanh) {
    // 0.5 (1 + tanh(u)) = 1 / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3)
    const V slope = hn::MulAdd(hn::Mul(x, x), hn::Set(d, -0.0713548162F), hn::Set(d, -1.59576912F));
    return hn::Div(x, hn::Add(one, exp(d, hn::Mul(x, slope))));
  } else if constexpr (kActivation == Activation::kGeluErf) {
    const V tail = erfc_of_scaled(d, x);
    const V twice_phi =
        hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(hn::Set(d, 2.0F), tail));
    return hn::Mul(hn::Mul(hn::Set(d, 0.5F), x), twice_phi);
  } else if constexpr (kActivation == Activation::kSilu) {
    return hn::Div(x, hn::Add(one, exp(d, hn::Neg(x))));
  } else if constexpr (kActivation == Activation::kGeluQuick) {
    return hn::Div(x, hn::Add(one, exp(d, hn::Mul(x, hn::Set(d, -1.702F)))));
  } else if constexpr (kActivation == Activation::kTanh) {
    return tanh(d, x);
  } else {
    return x;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quintet
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
