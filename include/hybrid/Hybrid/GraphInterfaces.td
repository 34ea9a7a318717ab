//===- GraphInterfaces.td - what passes ask of graph operations -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_HYBRID_GRAPH_INTERFACES_TD
#define HYBRID_HYBRID_GRAPH_INTERFACES_TD

include "mlir/IR/OpBase.td"

def Hybrid_DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::hybrid";
  let description = [{
    An operation that reverse mode can pass through. Differentiation stops at
    the mixer families: their adjoint is one operation with its own kernel and
    its own plain definition in the oracle.
  }];
  let methods = [
    InterfaceMethod<[{
      Builds the gradients of the operands. `resultGradients` has one value per
      result, null where nothing flows back. The answer has one value per
      operand, null for operands that have no gradient (ids, segments, weights
      of the loss). Fails with an error on the operation when a gradient that
      does flow back cannot be passed on, such as through a cache.
    }], "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>>", "buildAdjoint",
      (ins "::mlir::OpBuilder &":$builder,
           "::llvm::ArrayRef<::mlir::Value>":$resultGradients)>
  ];
}

def Hybrid_RowwiseOpInterface : OpInterface<"RowwiseOpInterface"> {
  let cppNamespace = "::hybrid";
  let description = [{
    An operation that computes each row of its result (the slice at one index of
    the leading dimension) from the same row of its operands, from static
    parameters and from the row's position alone. Such operations may stand in a
    `hybrid.rowwise` region. How one becomes tile operations is registered by
    the schedule.
  }];
  let methods = [
    InterfaceMethod<[{
      Whether this instance keeps to its row; a reshape that moves the leading
      dimension does not.
    }], "bool", "isRowwise", (ins), /*methodBody=*/"",
    /*defaultImplementation=*/[{ return true; }]>
  ];
}

#endif // HYBRID_HYBRID_GRAPH_INTERFACES_TD
