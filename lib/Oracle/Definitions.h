//===- Definitions.h - graph operations by their plain definition --------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One overload of `define` per operation: operands in the order of the
// operation (null for a segments operand), results in order. The values have
// the shapes the operation's verifier asks for, up to the dynamic sizes.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_ORACLE_DEFINITIONS_H
#define HYBRID_LIB_ORACLE_DEFINITIONS_H

#include "hybrid/Hybrid/HybridOps.h"
#include "hybrid/Oracle/Oracle.h"

namespace hybrid::oracle {

using Operands = llvm::ArrayRef<const Tensor *>;
using Results = std::vector<Tensor>;
using mlir::LogicalResult;

// RowDefinitions.cpp
LogicalResult defineUnary(mlir::Operation *op, Operands operands,
                          Results &results);
LogicalResult defineBinary(mlir::Operation *op, Operands operands,
                           Results &results);
LogicalResult define(ScaleOp op, Operands operands, Results &results,
                     const Call &call);
LogicalResult define(NormalizeOp op, Operands operands, Results &results,
                     const Call &call);
LogicalResult define(NormalizeGradOp op, Operands operands, Results &results,
                     const Call &call);
LogicalResult define(RotaryOp op, Operands operands, Results &results,
                     const Call &call);
LogicalResult define(LogNScaleOp op, Operands operands, Results &results,
                     const Call &call);
LogicalResult define(DropoutOp op, Operands operands, Results &results,
                     const Call &call);
LogicalResult define(ReduceTokensOp op, Operands operands, Results &results,
                     const Call &call);
LogicalResult define(ReduceDimOp op, Operands operands, Results &results,
                     const Call &call);
LogicalResult define(ReshapeOp op, Operands operands, Results &results,
                     const Call &call);
LogicalResult define(SliceOp op, Operands operands, Results &results,
                     const Call &call);
LogicalResult define(ConcatOp op, Operands operands, Results &results,
                     const Call &call);

// HeadDefinitions.cpp
LogicalResult define(EmbedOp op, Operands operands, Results &results,
                     const Call &call);
LogicalResult define(EmbedGradOp op, Operands operands, Results &results,
                     const Call &call);
LogicalResult define(ProductOp op, Operands operands, Results &results,
                     const Call &call);
LogicalResult define(CrossEntropyOp op, Operands operands, Results &results,
                     const Call &call);
LogicalResult define(CrossEntropyGradOp op, Operands operands, Results &results,
                     const Call &call);
LogicalResult define(LastRowsOp op, Operands operands, Results &results,
                     const Call &call);

// AttentionDefinitions.cpp
LogicalResult define(AttentionOp op, Operands operands, Results &results,
                     const Call &call);
LogicalResult define(AttentionGradOp op, Operands operands, Results &results,
                     const Call &call);
LogicalResult define(AttentionCachedOp op, Operands operands, Results &results,
                     const Call &call);

// ConvolutionDefinitions.cpp
LogicalResult define(ShortConvOp op, Operands operands, Results &results,
                     const Call &call);
LogicalResult define(ShortConvGradOp op, Operands operands, Results &results,
                     const Call &call);

// RecurrenceDefinitions.cpp
LogicalResult define(RecurrenceOp op, Operands operands, Results &results,
                     const Call &call);
LogicalResult define(RecurrenceGradOp op, Operands operands, Results &results,
                     const Call &call);

} // namespace hybrid::oracle

#endif // HYBRID_LIB_ORACLE_DEFINITIONS_H
