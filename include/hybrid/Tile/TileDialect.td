//===- TileDialect.td - the tile dialect -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TILE_TILE_DIALECT_TD
#define HYBRID_TILE_TILE_DIALECT_TD

include "mlir/IR/OpBase.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::hybrid::tile";
  let summary = "blocked algorithms on static tensors, one program per dispatch";
  let description = [{
    Values are tensors of static shape on which `arith` and `math` work
    elementwise. The dialect adds what upstream lacks for kernels: bounded loads
    and stores of strided global views, products with an accumulator and a
    stated operand precision, row reductions, prefix sums and program ids.
  }];
}

class Tile_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tile_Dialect, mnemonic, traits>;

#endif // HYBRID_TILE_TILE_DIALECT_TD
