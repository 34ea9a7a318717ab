//===- HybridDialect.td - the hybrid dialect -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_HYBRID_DIALECT_TD
#define HYBRID_HYBRID_DIALECT_TD

include "mlir/IR/OpBase.td"

def Hybrid_Dialect : Dialect {
  let name = "hybrid";
  let cppNamespace = "::hybrid";
  let summary = "stacks of position mixers, from the written spec to one function per entry point";
  let description = [{
    The dialect carries a model through the phases `spec`, `stack`, `graph`,
    `grad` and `fuse`. Its operations come in three files: `SpecOps.td` is what
    a person writes, `StackOps.td` has every layer and head group explicit, and
    `GraphOps.td` is mathematics on tensors.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

class Hybrid_Op<string mnemonic, list<Trait> traits = []>
    : Op<Hybrid_Dialect, mnemonic, traits>;

#endif // HYBRID_HYBRID_DIALECT_TD
