//===- Places.h - where each value of an entry lives -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_PLAN_PLACES_H
#define HYBRID_LIB_PLAN_PLACES_H

#include "hybrid/Plan/Plan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace hybrid {

/// A value's memory is a view of a buffer.
using Place = PlanView;

struct Places {
  llvm::DenseMap<mlir::Value, Place> values;
  /// The two views of a segments value: table, and segment of each token.
  llvm::DenseMap<mlir::Value, std::pair<Place, Place>> segments;
};

/// Gives every value of a scheduled entry its place and adds the buffers to
/// `entry`. Emits an error and fails where two purposes ask for different
/// places.
mlir::FailureOr<Places> assignPlaces(mlir::func::FuncOp function,
                                     PlanEntry &entry);

} // namespace hybrid

#endif // HYBRID_LIB_PLAN_PLACES_H
