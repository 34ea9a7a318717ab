//===- GraphBase.td - what the graph operations share -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_HYBRID_GRAPH_BASE_TD
#define HYBRID_HYBRID_GRAPH_BASE_TD

include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "hybrid/Hybrid/GraphInterfaces.td"
include "hybrid/Hybrid/HybridAttrs.td"
include "hybrid/Hybrid/HybridTypes.td"

// Shapes are written [a, b, c]; `tokens` is the length of the packed stream.
// Ids and labels are i32. Data is f32 where it says so, else of the model's
// compute type (docs/rationale/precision.md).
class Graph_TensorOfRank<Type element, int rank, string shape>
    : ConfinedType<RankedTensorOf<[element]>,
                   [CPred<"::llvm::cast<::mlir::RankedTensorType>($_self).getRank() == " # rank>],
                   element.summary # " tensor of shape " # shape>;

def Graph_Number : AnyTypeOf<[F32, BF16, F16], "f32, bf16 or f16">;
def Graph_Tensor : RankedTensorOf<[F32]>;
def Graph_AnyTensor : RankedTensorOf<[F32, BF16, F16]>;
def Graph_Heads : Graph_TensorOfRank<Graph_Number, 3, "[tokens, heads, dim]">;
def Graph_HeadsF32 : Graph_TensorOfRank<F32, 3, "[tokens, heads, dim]">;
def Graph_Rows : Graph_TensorOfRank<Graph_Number, 2, "[tokens, width]">;
def Graph_RowsF32 : Graph_TensorOfRank<F32, 2, "[tokens, width]">;
def Graph_PerHead : Graph_TensorOfRank<F32, 2, "[tokens, heads]">;
def Graph_PerToken : Graph_TensorOfRank<F32, 1, "[tokens]">;
def Graph_Ids : Graph_TensorOfRank<I32, 1, "[tokens]">;
def Graph_RandomKey
    : ConfinedType<RankedTensorOf<[I32]>,
                   [CPred<"::llvm::cast<::mlir::RankedTensorType>($_self).getShape() == "
                          "::llvm::ArrayRef<int64_t>{1}">],
                   "i32 tensor of shape [1]">,
      BuildableType<"::mlir::RankedTensorType::get({1}, $_builder.getI32Type())">;
def Graph_Matrix : Graph_TensorOfRank<Graph_Number, 2, "[rows, columns]">;
def Graph_Weight : Graph_TensorOfRank<Graph_Number, 2, "[out, in]">;
def Graph_WeightF32 : Graph_TensorOfRank<F32, 2, "[out, in]">;
def Graph_ConvState : Graph_TensorOfRank<Graph_Number, 3, "[slots, kernel - 1, channels]">;
def Graph_Cache : Graph_TensorOfRank<Graph_Number, 4, "[slots, heads, rows, dim]">;

// Every graph operation is a function of its operands: states are operand and
// result, and the plan makes them one buffer.
class Graph_Op<string mnemonic, list<Trait> traits = []>
    : Hybrid_Op<mnemonic, !listconcat([Pure], traits)>;

// An operation whose adjoint is built by buildAdjoint in GraphAdjoints.cpp.
class Graph_DifferentiableOp<string mnemonic, list<Trait> traits = []>
    : Graph_Op<mnemonic, !listconcat(
          [DeclareOpInterfaceMethods<Hybrid_DifferentiableOpInterface>], traits)>;

// Types printed as a function type, results inferred by the builders.
class Graph_InferredOp<string mnemonic, list<Trait> traits = []>
    : Graph_Op<mnemonic, !listconcat([InferTypeOpAdaptor], traits)>;
class Graph_InferredDifferentiableOp<string mnemonic, list<Trait> traits = []>
    : Graph_DifferentiableOp<mnemonic, !listconcat([InferTypeOpAdaptor], traits)>;

#endif // HYBRID_HYBRID_GRAPH_BASE_TD
