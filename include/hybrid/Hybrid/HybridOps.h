//===- HybridOps.h - operations of the hybrid dialect -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_HYBRID_HYBRIDOPS_H
#define HYBRID_HYBRID_HYBRIDOPS_H

#include "hybrid/Hybrid/HybridDialect.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "hybrid/Hybrid/HybridEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "hybrid/Hybrid/HybridAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "hybrid/Hybrid/HybridTypes.h.inc"

#include "hybrid/Hybrid/GraphInterfaces.h.inc"
namespace hybrid {
class LayerOp;
class MlpOp;
/// What holds for every named recurrence: the verifier of its interface.
llvm::LogicalResult verifyRecurrentMixer(mlir::Operation *op);
llvm::LogicalResult verifyOnlyClauses(mlir::Operation *op);

/// Of operations of a spec: attributes are written with clauses alone. Names
/// with a dot belong to other dialects and are let through.
template <typename ConcreteOp>
class OnlyClauses : public mlir::OpTrait::TraitBase<ConcreteOp, OnlyClauses> {
public:
  static llvm::LogicalResult verifyTrait(mlir::Operation *op) {
    return verifyOnlyClauses(op);
  }
};
} // namespace hybrid

#include "hybrid/Hybrid/MixerInterfaces.h.inc"

#define GET_OP_CLASSES
#include "hybrid/Hybrid/SpecOps.h.inc"

#define GET_OP_CLASSES
#include "hybrid/Hybrid/StackOps.h.inc"

// Row-wise regions of the graph operations end with a yield of these.
#define GET_OP_CLASSES
#include "hybrid/Hybrid/DispatchOps.h.inc"

#define GET_OP_CLASSES
#include "hybrid/Hybrid/GraphOps.h.inc"

#endif // HYBRID_HYBRID_HYBRIDOPS_H
