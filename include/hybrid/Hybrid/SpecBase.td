//===- SpecBase.td - classes of spec and stack operations -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_HYBRID_SPEC_BASE_TD
#define HYBRID_HYBRID_SPEC_BASE_TD

include "hybrid/Hybrid/HybridAttrs.td"
include "hybrid/Hybrid/HybridTypes.td"
include "hybrid/Hybrid/MixerInterfaces.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"

/// An attribute that no clause writes is a mistake, not a note.
def Hybrid_OnlyClauses : NativeOpTrait<"OnlyClauses"> {
  let cppNamespace = "::hybrid";
}

/// Operations of a spec stand for parts of a model and have no values. What is
/// optional is an OptionalAttr: its default is resolved by hybrid-expand-stack
/// and stated in the description.
class Hybrid_SpecOp<string mnemonic, list<Trait> traits = []>
    : Hybrid_Op<mnemonic, !listconcat([Hybrid_OnlyClauses], traits)> {
  let hasVerifier = 1;
}

/// An operation whose braces hold other spec operations.
class Hybrid_SpecBlockOp<string mnemonic, list<Trait> traits = []>
    : Hybrid_SpecOp<mnemonic, !listconcat([NoTerminator, SingleBlock,
                                           NoRegionArguments], traits)> {
  let regions = (region SizedRegion<1>:$body);
}

#endif // HYBRID_HYBRID_SPEC_BASE_TD
