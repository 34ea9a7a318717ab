//===- NormalDraws.cpp ---------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Eight numbers side by side, by short polynomials. They are off by less than
// one part in 2^40, which changes a number that is rounded to 24 bits only if
// it lies next to the middle between two of f32: one in some thousand does, or
// may, and is computed by the definition. So the bits follow neither from the
// polynomials nor from the processor's level.
//
//===----------------------------------------------------------------------===//

#include "train/NormalDraws.h"

#include <algorithm>
#include <cmath>
#include <cstring>

// Everything that takes or gives vectors is inlined into the function of a
// level, so nothing depends on how they are passed.
#pragma GCC diagnostic ignored "-Wpsabi"
#define HYB_INLINE inline __attribute__((always_inline))

namespace hyb::rt {

namespace {

constexpr double kTwoPi = 6.283185307179586476925;
constexpr int kLanes = 8;

template <typename Element> struct VectorOf {
  typedef Element type __attribute__((vector_size(kLanes * sizeof(Element))));
};
using Doubles = VectorOf<double>::type;
using Floats = VectorOf<float>::type;
using Integers = VectorOf<int64_t>::type;
using Words = VectorOf<uint64_t>::type;
using Flags = VectorOf<int8_t>::type;

/// Not inlined: code of a level might round it otherwise.
__attribute__((noinline)) float byDefinition(const RandomStream &stream,
                                             double scale, uint64_t element) {
  return static_cast<float>(scale * standardNormal(stream, element));
}

/// A polynomial, highest coefficient first.
template <size_t N>
HYB_INLINE Doubles polynomial(Doubles x, const double (&coefficients)[N]) {
  Doubles sum = x * coefficients[0] + coefficients[1];
  for (size_t i = 2; i < N; ++i)
    sum = sum * x + coefficients[i];
  return sum;
}

/// Of positive normal numbers. With x = 2^e m, m in [√½, √2), the logarithm of
/// m is 2 artanh((m − 1) / (m + 1)), whose argument is at most 0.172: what is
/// left out of the series is less than 2^-44 of it.
HYB_INLINE Doubles logarithm(Doubles x) {
  constexpr int64_t kRootOfHalf = 0x3FE6A09E667F3BCD;
  constexpr double kSeries[] = {1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9,
                                1.0 / 7,  1.0 / 5,  1.0 / 3,  1.0};
  Integers bits = (Integers)x;
  Integers exponent = (bits - kRootOfHalf) >> 52;
  Doubles mantissa = (Doubles)(bits - (Integers)((Words)exponent << 52));
  Doubles s = (mantissa - 1) / (mantissa + 1);
  return __builtin_convertvector(exponent, Doubles) * 0.693147180559945309417 +
         2 * s * polynomial(s * s, kSeries);
}

/// cos(2π turn) for turn in [0, 1). The nearest quarter is taken off exactly;
/// what is left is at most π/4 and the series' error less than 2^-45. The
/// definition rounds 2π turn, an error of up to 2^-51 of the result itself, so
/// next to a zero the two differ.
HYB_INLINE Doubles cosineOfTurn(Doubles turn) {
  constexpr double kSine[] = {
      1.0 / 6227020800, -1.0 / 39916800, 1.0 / 362880, -1.0 / 5040,
      1.0 / 120,        -1.0 / 6,        1.0};
  constexpr double kCosine[] = {
      -1.0 / 87178291200, 1.0 / 479001600, -1.0 / 3628800, 1.0 / 40320,
      -1.0 / 720,         1.0 / 24,        -1.0 / 2,       1.0};
  // A number to which this is added has its nearest integer in the low bits.
  constexpr double kToInteger = 0x1.8p52;
  Doubles shifted = turn * 4 + kToInteger;
  Integers quarter = (Integers)shifted;
  Doubles x = (turn - 0.25 * (shifted - kToInteger)) * kTwoPi, z = x * x;
  Doubles result =
      (quarter & 1) != 0 ? x * polynomial(z, kSine) : polynomial(z, kCosine);
  // Quarters 1 and 2 are negative.
  return (Doubles)((Words)result ^ (((Words)quarter + 1) & 2) << 62);
}

/// Of numbers that are not negative: x / √x by Newton's method, from the
/// exponent halved. Four rounds square an error of 3.4 % down to rounding. No
/// instruction for it is named in C++ that both compilers know for vectors.
HYB_INLINE Doubles squareRoot(Doubles x) {
  Doubles inverse = (Doubles)(0x5FE6EB50C7B537A9 - ((Integers)x >> 1));
  for (int round = 0; round < 4; ++round)
    inverse = inverse * (1.5 - 0.5 * x * inverse * inverse);
  return x * inverse;
}

/// In [0, 1), of two words of 32 bits.
HYB_INLINE Doubles fraction(Words high, Words low) {
  Words bits = (high << 32 | low) >> 11;
  return __builtin_convertvector((Integers)bits, Doubles) * 0x1p-53;
}

/// Two uniforms for each of eight places, as RandomStream makes them.
HYB_INLINE void uniforms(const RandomStream &stream, uint64_t first,
                         Doubles (&result)[2]) {
  constexpr uint64_t kLow = 0xFFFFFFFF;
  Words place = {0, 1, 2, 3, 4, 5, 6, 7};
  place += first;
  // Words of 32 bits in the low halves; what is above them is garbage.
  Words c0 = place, c1 = place >> 32;
  Words c2 = Words{} + stream.number(), c3 = Words{} + (stream.number() >> 32);
  auto k0 = static_cast<uint32_t>(stream.seed()),
       k1 = static_cast<uint32_t>(stream.seed() >> 32);
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    Words a = (c0 & kLow) * uint64_t(0xD2511F53);
    Words b = (c2 & kLow) * uint64_t(0xCD9E8D57);
    c0 = (b >> 32) ^ c1 ^ uint64_t(k0);
    c1 = b;
    c2 = (a >> 32) ^ c3 ^ uint64_t(k1);
    c3 = a;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  result[0] = fraction(c0, c1 & kLow);
  result[1] = fraction(c2, c3 & kLow);
}

/// Eight numbers, or of which of them the last bit is not sure. These are
/// where the factors 1 ± 2^-36 around all errors give two numbers of f32, and
/// next to the zeros of the cosine or the logarithm, where errors are no parts
/// of the result.
HYB_INLINE Floats draw(const RandomStream &stream, double scale, uint64_t first,
                       Integers &unsure) {
  constexpr double kSlack = 0x1p-36;
  Doubles u[2];
  uniforms(stream, first, u);
  // 1 - u is in (0, 1]: its logarithm is finite.
  Doubles squared = -2 * logarithm(1 - u[0]), cosine = cosineOfTurn(u[1]);
  Doubles value = scale * (squareRoot(squared) * cosine);
  Floats low = __builtin_convertvector(value * (1 - kSlack), Floats);
  Floats high = __builtin_convertvector(value * (1 + kSlack), Floats);
  Doubles size = (Doubles)((Integers)cosine & INT64_MAX);
  unsure = (__builtin_convertvector(low, Doubles) !=
            __builtin_convertvector(high, Doubles)) |
           (size < 0x1p-10) | (squared < 0x1p-40);
  return high;
}

HYB_INLINE void drawAll(const RandomStream &stream, double scale,
                        uint64_t first, int64_t count, float *values) {
  for (int64_t i = 0; i < count; i += kLanes) {
    uint64_t place = first + static_cast<uint64_t>(i);
    Integers unsure;
    Floats drawn = draw(stream, scale, place, unsure);
    Flags flags = __builtin_convertvector(unsure, Flags);
    uint64_t any;
    std::memcpy(&any, &flags, sizeof(any));
    for (int lane = 0; any != 0; ++lane, any >>= 8)
      if (any & 0xFF)
        drawn[lane] =
            byDefinition(stream, scale, place + static_cast<uint64_t>(lane));
    std::memcpy(values + i, &drawn,
                static_cast<size_t>(std::min<int64_t>(kLanes, count - i)) *
                    sizeof(float));
  }
}

#if defined(__x86_64__)
__attribute__((target("arch=x86-64-v3"))) void
drawAllV3(const RandomStream &stream, double scale, uint64_t first,
          int64_t count, float *values) {
  drawAll(stream, scale, first, count, values);
}

__attribute__((target("arch=x86-64-v4"))) void
drawAllV4(const RandomStream &stream, double scale, uint64_t first,
          int64_t count, float *values) {
  drawAll(stream, scale, first, count, values);
}
#endif

} // namespace

double standardNormal(const RandomStream &stream, uint64_t element) {
  std::array<double, 2> u = stream.uniforms(element);
  // 1 - u is in (0, 1]: its logarithm is finite.
  return std::sqrt(-2 * std::log(1 - u[0])) * std::cos(kTwoPi * u[1]);
}

void drawNormals(const RandomStream &stream, double scale, uint64_t first,
                 int64_t count, float *values, std::optional<CpuLevel> level) {
#if defined(__x86_64__)
  if (level == CpuLevel::X86_64_v4)
    return drawAllV4(stream, scale, first, count, values);
  if (level == CpuLevel::X86_64_v3)
    return drawAllV3(stream, scale, first, count, values);
#endif
  drawAll(stream, scale, first, count, values);
}

} // namespace hyb::rt
