//===- TileTypes.td - types of the tile dialect -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TILE_TILE_TYPES_TD
#define HYBRID_TILE_TILE_TYPES_TD

include "mlir/IR/AttrTypeBase.td"
include "hybrid/Tile/TileDialect.td"

def Tile_ViewType : TypeDef<Tile_Dialect, "View"> {
  let mnemonic = "view";
  let summary = "strided global memory";
  let description = [{
    One to four dims of global memory. Every dim has a run-time size and stride,
    counted in elements; what is known when the program is made stands in the
    type, the rest is `?`. Without `strides` the view is contiguous: the stride
    of a dim is the product of the sizes after it, so that inner dims of static
    size have static strides. The last stride is always 1.

    Example, from `test/Tile/ops.mlir`:

    ```mlir
    !tile.view<?x8x64xf32>                          // strides 512, 64, 1

    !tile.view<?x8x64xf32, strides = [?, 64, 1]>    // rows of a wider buffer

    !tile.view<?x8x?x64xf32>                        // strides ?, ?, 64, 1
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$shape,
    "::mlir::Type":$elementType,
    ArrayRefParameter<"int64_t">:$strides
  );
  let builders = [
    TypeBuilderWithInferredContext<(ins
        "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType), [{
      return $_get(elementType.getContext(), shape, elementType,
                   contiguousStrides(shape));
    }]>,
  ];
  let extraClassDeclaration = [{
    int64_t getRank() const { return getShape().size(); }
    bool isContiguous() const {
      return getStrides() == ::llvm::ArrayRef<int64_t>(contiguousStrides(getShape()));
    }
    /// Strides of the contiguous view of this shape; dynamic where a size they
    /// are a product of is.
    static ::llvm::SmallVector<int64_t> contiguousStrides(::llvm::ArrayRef<int64_t> shape);
  }];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // HYBRID_TILE_TILE_TYPES_TD
