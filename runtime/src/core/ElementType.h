//===- ElementType.h - what buffers are made of ---------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CORE_ELEMENTTYPE_H
#define HYBRID_RUNTIME_CORE_ELEMENTTYPE_H

#include "core/Status.h"

#include <cstdint>
#include <string>

namespace hyb::rt {

/// The values are those of the C API.
enum class ElementType : uint8_t {
  F32 = HYB_F32,
  I32 = HYB_I32,
  BF16 = HYB_BF16,
  F16 = HYB_F16
};

/// "bf16"
const char *elementTypeName(ElementType type);
/// An error about `where` when no type has the name.
Result<ElementType> elementTypeNamed(const std::string &name,
                                     const std::string &where);
inline int64_t elementBytes(ElementType type) {
  return type == ElementType::F32 || type == ElementType::I32 ? 4 : 2;
}
inline bool isFloat(ElementType type) { return type != ElementType::I32; }

/// The number with these bits; exact.
float bf16ToFloat(uint16_t bits);
float f16ToFloat(uint16_t bits);
/// Rounded to nearest even, as compiled code does it; a NaN stays one.
uint16_t floatToBf16(float value);
uint16_t floatToF16(float value);
/// Element `index` of an array of floats of the type.
float floatAt(ElementType type, const void *data, int64_t index);

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CORE_ELEMENTTYPE_H
