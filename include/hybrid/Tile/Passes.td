//===- Passes.td - passes of the phase 'tile' -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TILE_PASSES_TD
#define HYBRID_TILE_PASSES_TD

include "mlir/Pass/PassBase.td"

def HybridNarrowProducts : Pass<"hybrid-narrow-products", "::hybrid::tile::ProgramOp"> {
  let summary = "products in the 16-bit type of a program";
  let description = [{
    Families write products of f32 tiles, with `arith.extf` behind the load of a
    bf16 or f16 view. Where both operands of a `tile.dot` come from such loads,
    the product takes the tiles as they were loaded, which changes no number:
    sums are f32 before and after. Where one does, the other is rounded to its
    type, to nearest even; the rounded tile is read by the product alone. Two
    computed tiles are rounded to the type of the program's 16-bit views; a
    program without such views, or with views of both types, keeps their product
    in f32. For targets whose matrix units read bf16 and f16.

    Before, from `test/Tile/narrow-products.mlir`:

    ```mlir
    %k = arith.extf %load : tensor<16x64xbf16> to tensor<16x64xf32>
    ...
    %s = tile.dot %q, %k, %zero {transpose_b} : tensor<16x64xf32>, tensor<16x64xf32> -> tensor<16x16xf32>
    ```

    After:

    ```mlir
    %r = arith.truncf %q : tensor<16x64xf32> to tensor<16x64xbf16>
    %s = tile.dot %r, %load, %zero {transpose_b} : tensor<16x64xbf16>, tensor<16x64xbf16> -> tensor<16x16xf32>
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numProducts", "products", "Products narrowed">];
}

#endif // HYBRID_TILE_PASSES_TD
