//===- Arguments.h - The tensors of a call of a function --------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CORE_ARGUMENTS_H
#define HYBRID_RUNTIME_CORE_ARGUMENTS_H

#include "core/Device.h"
#include "core/Plan.h"
#include "hybrid/functions.h"

namespace hyb::rt {

/// An entry that takes named tensors and nothing else of the caller's.
Status checkFunction(const PlanEntry &entry);

/// What a call on sequences of these lengths is described by; each has the slot
/// of its index.
Result<Symbols> describeCall(const int64_t *lengths, int64_t segments);

/// The sizes of an input or output.
Result<std::vector<int64_t>> shapeOf(const PlanBuffer &buffer,
                                     const Symbols &symbols);

hyb_dl_type elementTypeOf(const PlanBuffer &buffer);

/// The addresses of all arguments of `entry`, in its order, once each tensor is
/// found to be what the entry takes.
Result<std::vector<void *>>
checkArguments(const PlanEntry &entry, const Symbols &symbols,
               const Device &device, const hyb_argument *given, int64_t count);

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CORE_ARGUMENTS_H
