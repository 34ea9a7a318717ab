//===- Checked.h - Integer arithmetic that notices overflow -----*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CORE_CHECKED_H
#define HYBRID_RUNTIME_CORE_CHECKED_H

#include <cstdint>

namespace hyb::rt {

/// `*result = a + b`; false when it does not fit.
template <typename T> bool checkedAdd(T a, T b, T *result) {
  return !__builtin_add_overflow(a, b, result);
}

/// `*result = a * b`; false when it does not fit.
template <typename T> bool checkedMul(T a, T b, T *result) {
  return !__builtin_mul_overflow(a, b, result);
}

/// Division that rounds down; false for a zero divisor or an overflow.
inline bool checkedFloorDiv(int64_t a, int64_t b, int64_t *result) {
  if (b == 0 || (a == INT64_MIN && b == -1))
    return false;
  int64_t quotient = a / b;
  *result = quotient - ((a % b != 0 && ((a < 0) != (b < 0))) ? 1 : 0);
  return true;
}

/// Division that rounds up; false for a zero divisor or an overflow.
inline bool checkedCeilDiv(int64_t a, int64_t b, int64_t *result) {
  if (b == 0 || (a == INT64_MIN && b == -1))
    return false;
  int64_t quotient = a / b;
  *result = quotient + ((a % b != 0 && ((a < 0) == (b < 0))) ? 1 : 0);
  return true;
}

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CORE_CHECKED_H
