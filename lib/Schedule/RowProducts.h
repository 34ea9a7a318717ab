//===- RowProducts.h - products of a decoding step, several at once -------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_SCHEDULE_ROWPRODUCTS_H
#define HYBRID_LIB_SCHEDULE_ROWPRODUCTS_H

#include "Scheduler.h"

namespace hybrid {

/// Replaces every product of the block that a decoding step has, with those
/// that read the same rows and the row-wise operation that makes them, by one
/// launch where the call has a few rows, else by what strategies choose for
/// each. Does nothing for targets and entries without such steps.
mlir::LogicalResult scheduleRowProducts(Scheduler &scheduler,
                                        mlir::Block &block);

} // namespace hybrid

#endif // HYBRID_LIB_SCHEDULE_ROWPRODUCTS_H
