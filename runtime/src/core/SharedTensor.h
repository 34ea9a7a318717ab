//===- SharedTensor.h - Tensors for and from other libraries ----*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CORE_SHAREDTENSOR_H
#define HYBRID_RUNTIME_CORE_SHAREDTENSOR_H

#include "core/Device.h"
#include "core/ElementType.h"

namespace hyb::rt {

/// Contiguous elements in `memory` from `byteOffset` on, of which the
/// tensor keeps a share.
hyb_dl_managed *shareTensor(const Device &device, const DeviceMemory &memory,
                            int64_t byteOffset, std::vector<int64_t> shape,
                            ElementType type = ElementType::F32);

/// As other libraries name it.
hyb_dl_type dlTypeOf(ElementType type);

/// The elements of a contiguous vector of i32 or i64, as i32. An id that does
/// not fit becomes -1, which no vocabulary has.
Result<std::vector<int32_t>> readIds(const Device &device,
                                     const hyb_dl_tensor &tensor);

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CORE_SHAREDTENSOR_H
