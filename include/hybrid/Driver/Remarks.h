//===- Remarks.h - decisions of the compiler, printed -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_DRIVER_REMARKS_H
#define HYBRID_DRIVER_REMARKS_H

#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/LLVM.h"

namespace hybrid {

class Statistics;

/// Prints every remark whose category (the name of its phase) matches the
/// regular expression `filter`, all of them when it is empty, as a diagnostic:
///
///     demo.mlir:7:5: remark: [HYB-S101] layers.3.mixer.q_proj: ...
///
/// The id in brackets is the remark's name; it keeps its meaning over versions.
mlir::LogicalResult printRemarks(mlir::MLIRContext &context,
                                 llvm::StringRef filter);

/// Counts every remark by its id; with a filter also prints as above.
mlir::LogicalResult countRemarks(mlir::MLIRContext &context,
                                 Statistics &statistics,
                                 std::optional<llvm::StringRef> filter);

} // namespace hybrid

#endif // HYBRID_DRIVER_REMARKS_H
