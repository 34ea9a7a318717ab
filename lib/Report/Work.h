//===- Work.h - the work of one graph operation -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_REPORT_WORK_H
#define HYBRID_LIB_REPORT_WORK_H

#include "hybrid/Hybrid/GraphShapes.h"
#include "hybrid/Report/Report.h"

namespace hybrid {

/// One segment of `tokens` new tokens behind `past` old ones.
struct Call {
  int64_t tokens;
  int64_t past;
};

/// Elements of `type` in `call`, for one state slot without rollback.
int64_t getElements(mlir::RankedTensorType type, Call call);

/// Bytes of `value`, read or written whole.
double getBytes(mlir::Value value, Call call);

/// Bytes of all operands and results of `op`: one that is overwritten counts as
/// both.
double getMovedBytes(mlir::Operation *op, Call call);

/// The work of `op` by its plain definition; members of a region add their
/// operations, and the region its bytes.
Work getWork(mlir::Operation *op, Call call);

} // namespace hybrid

#endif // HYBRID_LIB_REPORT_WORK_H
