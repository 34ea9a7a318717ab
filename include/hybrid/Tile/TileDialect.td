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
    stated operand precision, row reductions, prefix sums, the unit lower
    triangular inverse, an ordered accumulate into global memory, and program
    ids. Schedules are data beside the program (`tile.schedule`).
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    /// The discardable attribute by which a schedule refers to an op.
    static constexpr ::llvm::StringLiteral kNameAttr = "tile.name";
    /// On a program: when it makes what is not a number from numbers, in words
    /// for the person whose model does that.
    static constexpr ::llvm::StringLiteral kCautionAttr = "tile.caution";
    /// On a program whose launch may begin before the launch in front of it has
    /// ended: the numbers of the views that no launch in front writes. Loads of
    /// these need not wait for that end; all other accesses do.
    static constexpr ::llvm::StringLiteral kOverlapAttr = "tile.overlap";
    /// On a program: warps that a GPU's multiprocessor shall have registers
    /// for, if one block has fewer: who else would use the memory while it
    /// computes.
    static constexpr ::llvm::StringLiteral kWarpsAttr = "tile.warps";
  }];
}

class Tile_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tile_Dialect, mnemonic, traits>;

#endif // HYBRID_TILE_TILE_DIALECT_TD
