//===- ElementType.cpp ---------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/ElementType.h"

#include <cmath>
#include <cstring>

namespace hyb::rt {

namespace {
constexpr ElementType kTypes[] = {ElementType::F32, ElementType::I32,
                                  ElementType::BF16, ElementType::F16};
} // namespace

const char *elementTypeName(ElementType type) {
  switch (type) {
  case ElementType::F32:
    return "f32";
  case ElementType::I32:
    return "i32";
  case ElementType::BF16:
    return "bf16";
  case ElementType::F16:
    return "f16";
  }
  return "";
}

Result<ElementType> elementTypeNamed(const std::string &name,
                                     const std::string &where) {
  for (ElementType type : kTypes)
    if (name == elementTypeName(type))
      return type;
  return failure(HYB_INVALID_FILE,
                 "%s: type '%.32s' is not one of f32, i32, bf16 and f16",
                 where.c_str(), name.c_str());
}

float bf16ToFloat(uint16_t bits) {
  uint32_t wide = uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

float f16ToFloat(uint16_t bits) {
  int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  float size;
  if (exponent == 31)
    size = fraction ? NAN : INFINITY;
  else if (exponent == 0)
    size = std::ldexp(float(fraction), -24);
  else
    size = std::ldexp(float(fraction + 1024), exponent - 25);
  return bits & 0x8000 ? -size : size;
}

namespace {
uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
} // namespace

uint16_t floatToBf16(float value) {
  uint32_t bits = bitsOf(value);
  if (std::isnan(value))
    return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

uint16_t floatToF16(float value) {
  uint32_t sign = bitsOf(value) >> 16 & 0x8000, size = bitsOf(value) << 1 >> 1;
  if (std::isnan(value))
    return uint16_t(sign | 0x7e00);
  // From halfway between the largest number and the next power of two on.
  if (size >= bitsOf(65520.0f))
    return uint16_t(sign | 0x7c00);
  // Denormal numbers are multiples of 2^-24, which the addition rounds to.
  if (size < bitsOf(0x1p-14f))
    return uint16_t(sign | (bitsOf(std::fabs(value) + 0.5f) - bitsOf(0.5f)));
  // A carry reaches the exponent, whose bias is less by 112.
  size += 0xfff + (size >> 13 & 1);
  return uint16_t(sign | ((size >> 13) - (112u << 10)));
}

float floatAt(ElementType type, const void *data, int64_t index) {
  if (type == ElementType::F32)
    return static_cast<const float *>(data)[index];
  uint16_t bits = static_cast<const uint16_t *>(data)[index];
  return type == ElementType::BF16 ? bf16ToFloat(bits) : f16ToFloat(bits);
}

} // namespace hyb::rt
