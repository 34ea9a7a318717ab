//===- Passes.td - passes of the phase 'fuse' -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_FUSE_PASSES_TD
#define HYBRID_FUSE_PASSES_TD

include "mlir/Pass/PassBase.td"

def HybridFuseRowwise : Pass<"hybrid-fuse-rowwise", "::mlir::ModuleOp"> {
  let summary = "join neighbouring row-wise operations into regions";
  let description = [{
    Operations that compute a row from the same row (`RowwiseOpInterface`) and are
    neighbours become one `hybrid.rowwise`, which loads each operand once and
    stores only what is used outside. Two are neighbours when one reads the
    other's result or both read the same rows. An operation never joins across one
    that is not row-wise (a product, a mixer), so nothing is computed twice and
    nothing waits for a region that needs it. A reshape inside joins what it
    stands between; at the edge it stays outside, where it is a view. Slices and
    concatenations are views too and stay outside. An operation that reads one row
    or none (an activation, a filled tensor) joins its users rather than its
    producer when they come later. The last rows of a sum are the sum of last
    rows, which joins the norm in front of the head.

    Remarks (category `fuse`):

    | id | says |
    |---|---|
    | `HYB-F101` | which operations were joined |
    | `HYB-F201` | an operation is alone: no neighbour is row-wise |
    | `HYB-F202` | an operation did not join a row-wise producer, and what stands between |

    It changes no numbers.

    Before, from `test/Fuse/fuse-rowwise.mlir`:

    ```mlir
    func.func @chain(%x: !x, %y: !x, %w: tensor<8xf32>) -> (!x, !x) attributes {hybrid.entry = "e"} {
      %0 = hybrid.add %x, %y : !x, !x
      %1 = hybrid.normalize rms %0 epsilon 1.000000e-05 : !x
      %2 = hybrid.mul %1, %w : !x, tensor<8xf32>
      return %0, %2 : !x, !x
    }
    ```

    After:

    ```mlir
    %0:2 = hybrid.rowwise (%a = %x : tensor<?x8xf32>, %b = %y : tensor<?x8xf32>, %c = %w : tensor<8xf32>)
        -> (tensor<?x8xf32>, tensor<?x8xf32>) {
      %1 = hybrid.add %a, %b : tensor<?x8xf32>, tensor<?x8xf32>
      %2 = hybrid.normalize rms %1 epsilon 1.000000e-05 : tensor<?x8xf32>
      %3 = hybrid.mul %2, %c : tensor<?x8xf32>, tensor<8xf32>
      hybrid.yield %1, %3 : tensor<?x8xf32>, tensor<?x8xf32>
    }
    return %0#0, %0#1 : tensor<?x8xf32>, tensor<?x8xf32>
    ```
  }];
  let statistics = [
    Statistic<"numRegions", "regions", "Row-wise regions made">,
    Statistic<"numJoined", "joined", "Operations in them">,
    Statistic<"numAlone", "alone", "Row-wise operations left alone">
  ];
  let dependentDialects = ["::hybrid::HybridDialect"];
}

#endif // HYBRID_FUSE_PASSES_TD
