//===- PlacedMemory.h - kernels on memory in awkward places -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TEST_UNIT_ENDTOEND_PLACEDMEMORY_H
#define HYBRID_TEST_UNIT_ENDTOEND_PLACEDMEMORY_H

#include "../Target/CPU/KernelHarness.h"

namespace hybrid::test {

/// As cpu::runLoaded, but every view has memory of its own whose last element
/// is followed by a page that nobody may touch.
mlir::LogicalResult runBeforeGuardPages(const cpu::LoadedKernel &kernel,
                                        tile::ProgramOp program,
                                        llvm::ArrayRef<tile::HostView> views,
                                        llvm::ArrayRef<int64_t> symbols);

/// As cpu::runLoaded, but the rows of every view whose program leaves their
/// distance open are so far apart that the last one is more than 2^31 elements
/// behind the first.
mlir::LogicalResult runOnDistantRows(const cpu::LoadedKernel &kernel,
                                     tile::ProgramOp program,
                                     llvm::ArrayRef<tile::HostView> views,
                                     llvm::ArrayRef<int64_t> symbols);

} // namespace hybrid::test

#endif // HYBRID_TEST_UNIT_ENDTOEND_PLACEDMEMORY_H
