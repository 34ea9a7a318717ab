//===- TileOps.td - programs, schedules and values of the tile dialect -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TILE_TILE_OPS_TD
#define HYBRID_TILE_TILE_OPS_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "hybrid/Tile/TileAttrs.td"
include "hybrid/Tile/TileTypes.td"

/// A value of the dialect: one to three static dims.
def Tile_Tile : Type<
    And<[StaticShapeTensorOf<[AnyFloat, I1, I32]>.predicate,
         HasAnyRankOfPred<[1, 2, 3]>]>,
    "tile of static shape, rank 1 to 3, of floats, i32 or i1",
    "::mlir::RankedTensorType">;

def Tile_FloatTile : Type<
    And<[StaticShapeTensorOf<[AnyFloat]>.predicate, HasAnyRankOfPred<[1, 2, 3]>]>,
    "tile of static shape, rank 1 to 3, of floats", "::mlir::RankedTensorType">;

def Tile_Matrix : Type<
    And<[StaticShapeTensorOf<[AnyFloat]>.predicate, HasAnyRankOfPred<[2]>]>,
    "tile of static shape, rank 2, of floats", "::mlir::RankedTensorType">;

def Tile_Scalar : AnyTypeOf<[AnyFloat, I1, I32, Index], "scalar">;

/// An op with a result, which is printed under its `tile.name`.
class Tile_ValueOp<string mnemonic, list<Trait> traits = []>
    : Tile_Op<mnemonic, !listconcat(traits, [
          DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>])> {
  let extraClassDefinition = [{
    void $cppClass::getAsmResultNames(::mlir::OpAsmSetValueNameFn setName) {
      if (auto name = (*this)->getAttrOfType<::mlir::StringAttr>(TileDialect::kNameAttr))
        setName((*this)->getResult(0), name.getValue());
    }
  }];
}

class Tile_PureOp<string mnemonic, list<Trait> traits = []>
    : Tile_ValueOp<mnemonic, !listconcat(traits, [Pure])>;

//===----------------------------------------------------------------------===//
// Programs and schedules
//===----------------------------------------------------------------------===//

def Tile_ProgramOp : Tile_Op<"program", [
    IsolatedFromAbove, Symbol, SingleBlock]> {
  let summary = "one kernel: a blocked algorithm over global views";
  let description = [{
    The body runs once per point of a grid. `grid` gives the sizes as affine
    expressions of the six symbols of a call, always in the order
    `[tokens, segments, longest, slots, context, depth]`. `order` has a word per
    grid dim: points along `parallel` dims are independent; along an `ordered`
    dim they take turns in ascending order, which fixes the order of
    `tile.accumulate` and of all accesses to memory that they share.

    Arguments are views, inputs first. Inside, values are tiles (tensors of
    static shape, rank 1 to 3, without empty dims, of floats, i32 or i1) and
    scalars; the body may use `tile`, `scf.for` over `index`, `scf.if`,
    `tensor.extract` (one element of a tile as a scalar) and the `arith` and
    `math` ops that the interpreter and every target know, without fast-math
    flags. Any op of the body may carry a discardable `tile.name` (a string,
    unique in the program), by which `tile.schedule` refers to it.

    Accumulation is in the element type of the accumulator; a target may not
    reassociate across `scf.for` iterations or turns, so the bits depend on the
    program alone.

    Example, from `test/Tile/ops.mlir`:

    ```mlir
    #blocks = affine_map<()[tokens, segments, longest, slots, context, depth] -> (tokens ceildiv 16)>

    tile.program @double(%x: !tile.view<?x64xf32>, %y: !tile.view<?x64xf32>)
        grid #blocks order [parallel] {
      %c0 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      %block = tile.id 0
      %row = arith.muli %block, %c16 : index
      %tokens = tile.dim %x, 0 : !tile.view<?x64xf32>
      %a = tile.load %x[%row, %c0] dims [0, 1] limit(%tokens) {tile.name = "read"} : !tile.view<?x64xf32> -> tensor<16x64xf32>
      %b = arith.addf %a, %a {tile.name = "sum"} : tensor<16x64xf32>
      tile.store %b, %y[%row, %c0] dims [0, 1] limit(%tokens) : tensor<16x64xf32>, !tile.view<?x64xf32>
      tile.return
    }
    ```

    Lowers to one C function on the CPU and to one kernel on a GPU.
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    AffineMapAttr:$grid,
    Tile_OrderArrayAttr:$order,
    OptionalAttr<StrAttr>:$sym_visibility
  );
  let regions = (region SizedRegion<1>:$body);
  let skipDefaultBuilders = 1;
  let builders = [
    OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::AffineMap":$grid,
                   "::llvm::ArrayRef<Order>":$order,
                   "::llvm::ArrayRef<::mlir::Type>":$views)>,
  ];
  let extraClassDeclaration = [{
    /// The symbols of every grid map, in order.
    static constexpr unsigned kNumSymbols = 6;
    ::mlir::Block &getBlock() { return getBody().front(); }
    ::mlir::Block::BlockArgListType getViews() { return getBlock().getArguments(); }
    unsigned getGridRank() { return getGrid().getNumResults(); }
    Order getOrderOf(unsigned dim) {
      return ::mlir::cast<OrderAttr>(getOrder()[dim]).getValue();
    }
    /// The op that carries `tile.name = name`, or null.
    ::mlir::Operation *lookupNamedOp(::llvm::StringRef name);
    /// Whether the program stores to the view or accumulates into it.
    bool writes(::mlir::BlockArgument view);
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Tile_ReturnOp : Tile_Op<"return", [
    Pure, Terminator, HasParent<"ProgramOp">]> {
  let summary = "end of a program";
  let description = [{
    Ends the body of a `tile.program`; results are what was stored.

    Example, from `test/Tile/ops.mlir`: `tile.return`
  }];
  let assemblyFormat = "attr-dict";
}

def Tile_ScheduleOp : Tile_Op<"schedule", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "how one target runs a program";
  let description = [{
    A schedule is data: passes of the target carry it out and check it, none has
    to discover it. `roles` names the groups of warps that share the work, each
    with `warpgroups` (1 to 8) and the register budget per thread, `registers` (a
    multiple of 8 from 24 to 256; 65536 per block in all). A program has one
    record per target. `ops` has
    an entry per named op of the program (`tile.name`):

    | key | type | meaning |
    |---|---|---|
    | `role` | string | who runs it; a key of `roles` |
    | `stage` | integer | pipeline stage in its loop; higher stages run later, on earlier iterations |
    | `buffers` | integer | copies of the result kept in shared memory |
    | `issue` | integer | place in the issue order of its role |
    | `barrier` | string | what guards the result: `mbarrier`, `named` or `turn` |
    | `operand` | string | where the left operand of a product lives: `registers` or `shared` |
    | `wait` | integer | products that may still be in flight when this op starts |

    Example, from `test/Tile/ops.mlir`:

    ```mlir
    tile.schedule @double target("sm_90a")
        roles {all = {warpgroups = 1, registers = 168}}
        ops {read = {role = "all", stage = 0, buffers = 2, barrier = "mbarrier"},
             sum = {role = "all", stage = 1}}
    ```
  }];
  let arguments = (ins
    FlatSymbolRefAttr:$program,
    StrAttr:$target,
    DictionaryAttr:$roles,
    DictionaryAttr:$ops
  );
  let assemblyFormat = [{
    $program `target` `(` $target `)` `roles` $roles `ops` $ops attr-dict
  }];
  let hasVerifier = 1;
}

def Tile_IdOp : Tile_PureOp<"id"> {
  let summary = "index of this point along a grid dim";
  let description = [{
    Example, from `test/Tile/ops.mlir`: `%block = tile.id 0`
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$dim);
  let results = (outs Index:$result);
  let assemblyFormat = "$dim attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Global memory
//===----------------------------------------------------------------------===//

def Tile_DimOp : Tile_PureOp<"dim"> {
  let summary = "run-time size of a view";
  let description = [{
    Example, from `test/Tile/ops.mlir`: `%tokens = tile.dim %x, 0 : !tile.view<?x64xf32>`
  }];
  let arguments = (ins Tile_ViewType:$view, ConfinedAttr<I64Attr, [IntNonNegative]>:$dim);
  let results = (outs Index:$result);
  let assemblyFormat = "$view `,` $dim attr-dict `:` qualified(type($view))";
  let hasVerifier = 1;
}

def Tile_LoadOp : Tile_ValueOp<"load", [AttrSizedOperandSegments]> {
  let summary = "reads a block of a view";
  let description = [{
    There is one index per view dim, the base of the block. Tile dim d runs
    along view dim `dims[d]` (ascending); the other view dims are indexed only.
    With one limit per tile dim, from the first:

        tile[x] = view[base + x]   where base[dims[d]] + x[d] < limit[d] for all limited d
        tile[x] = 0                elsewhere, and that memory is not read

    A tile dim without a limit must lie inside the view. Offsets of the base are
    64-bit.

    Example, from `test/Tile/ops.mlir`:

    ```mlir
    %k = tile.load %keys[%row, %head, %c0] dims [0, 2] limit(%end)
       : !tile.view<?x8x64xf32, strides = [?, 64, 1]> -> tensor<64x64xf32>
    ```

    Lowers to vector loads on the CPU (full blocks unmasked) and to bulk or
    asynchronous copies on a GPU.
  }];
  let arguments = (ins
    Arg<Tile_ViewType, "", [MemRead]>:$view,
    Variadic<Index>:$indices,
    Variadic<Index>:$limits,
    DenseI64ArrayAttr:$dims
  );
  let results = (outs Tile_Tile:$tile);
  let assemblyFormat = [{
    $view `[` $indices `]` `dims` $dims (`limit` `(` $limits^ `)`)? attr-dict
    `:` qualified(type($view)) `->` type($tile)
  }];
  let hasVerifier = 1;
}

def Tile_StoreOp : Tile_Op<"store", [AttrSizedOperandSegments]> {
  let summary = "writes a block of a view";
  let description = [{
    The mirror image of `tile.load`: elements at or past a limit are not written.

    Example, from `test/Tile/ops.mlir`:

    ```mlir
    tile.store %b, %y[%row, %c0] dims [0, 1] limit(%tokens)
      : tensor<16x64xf32>, !tile.view<?x64xf32>
    ```
  }];
  let arguments = (ins
    Tile_Tile:$tile,
    Arg<Tile_ViewType, "", [MemWrite]>:$view,
    Variadic<Index>:$indices,
    Variadic<Index>:$limits,
    DenseI64ArrayAttr:$dims
  );
  let assemblyFormat = [{
    $tile `,` $view `[` $indices `]` `dims` $dims (`limit` `(` $limits^ `)`)?
    attr-dict `:` type($tile) `,` qualified(type($view))
  }];
  let hasVerifier = 1;
}

def Tile_AccumulateOp : Tile_Op<"accumulate", [AttrSizedOperandSegments]> {
  let summary = "adds a block to a view, in turn order";
  let description = [{
        view[base + x] = (first ? 0 : view[base + x]) + tile[x]

    inside the limits, as in `tile.store`. Points of an ordered grid dim do this
    in ascending turn order, so the sum has one order of additions. `first`
    says that this turn is the first one to touch the block: the tile is stored,
    and the memory may have held anything before. Without `first` it adds.

    Example, from `test/Tile/ops.mlir`:

    ```mlir
    tile.accumulate %dq, %grad[%row, %head, %c0] dims [0, 2] limit(%end) first(%is_first)
      : tensor<64x64xf32>, !tile.view<?x8x64xf32>
    ```

    On the CPU a load, an addition and a store, because an ordered dim is a loop;
    on a GPU a reduction that waits for its turn.
  }];
  let arguments = (ins
    Tile_FloatTile:$tile,
    Arg<Tile_ViewType, "", [MemRead, MemWrite]>:$view,
    Variadic<Index>:$indices,
    Variadic<Index>:$limits,
    Optional<I1>:$first,
    DenseI64ArrayAttr:$dims
  );
  let assemblyFormat = [{
    $tile `,` $view `[` $indices `]` `dims` $dims (`limit` `(` $limits^ `)`)?
    (`first` `(` $first^ `)`)? attr-dict `:` type($tile) `,` qualified(type($view))
  }];
  let hasVerifier = 1;
}

def Tile_LoadScalarOp : Tile_ValueOp<"load_scalar", [
    TypesMatchWith<"the value has the element type of the view", "view", "value",
                   "::mlir::cast<ViewType>($_self).getElementType()">]> {
  let summary = "reads one element of a view";
  let description = [{
    Example, from `test/Tile/ops.mlir`:
    `%begin = tile.load_scalar %table[%segment, %c0] : !tile.view<?x4xi32>`
  }];
  let arguments = (ins Arg<Tile_ViewType, "", [MemRead]>:$view, Variadic<Index>:$indices);
  let results = (outs Tile_Scalar:$value);
  let assemblyFormat = "$view `[` $indices `]` attr-dict `:` qualified(type($view))";
  let hasVerifier = 1;
}

def Tile_StoreScalarOp : Tile_Op<"store_scalar", [
    TypesMatchWith<"the value has the element type of the view", "view", "value",
                   "::mlir::cast<ViewType>($_self).getElementType()">]> {
  let summary = "writes one element of a view";
  let description = [{
    Example, from `test/Tile/ops.mlir`:
    `tile.store_scalar %norm, %sums[%block] : !tile.view<?xf32>`
  }];
  let arguments = (ins
    Tile_Scalar:$value,
    Arg<Tile_ViewType, "", [MemWrite]>:$view,
    Variadic<Index>:$indices
  );
  let assemblyFormat = "$value `,` $view `[` $indices `]` attr-dict `:` qualified(type($view))";
  let hasVerifier = 1;
}

class Tile_RowsMatch<string operand, string width>
    : TypesMatchWith<operand # " has one entry per row of the tile", "tile", operand,
                     "rowVectorType($_self, " # width # ")">;

def Tile_LoadRowsOp : Tile_ValueOp<"load_rows", [
    Tile_RowsMatch<"rows", "32">, Tile_RowsMatch<"mask", "1">]> {
  let summary = "gathers rows of a view";
  let description = [{
    As `tile.load`, but row r of the tile comes from index
    `base[dims[0]] + rows[r]` of view dim `dims[0]`. Rows whose mask is false
    are 0 and not read.

        tile[r, c] = mask[r] ? view[base + (rows[r], c)] : 0

    Example, from `test/Tile/ops.mlir`:

    ```mlir
    %k = tile.load_rows %cache[%slot, %head, %c0, %c0] rows(%r) mask(%m) dims [2, 3]
       : !tile.view<?x8x?x64xf32> -> tensor<64x64xf32>
    ```
  }];
  let arguments = (ins
    Arg<Tile_ViewType, "", [MemRead]>:$view,
    Variadic<Index>:$indices,
    TensorOf<[I32]>:$rows,
    TensorOf<[I1]>:$mask,
    DenseI64ArrayAttr:$dims
  );
  let results = (outs Tile_Tile:$tile);
  let assemblyFormat = [{
    $view `[` $indices `]` `rows` `(` $rows `)` `mask` `(` $mask `)` `dims` $dims
    attr-dict `:` qualified(type($view)) `->` type($tile)
  }];
  let hasVerifier = 1;
}

def Tile_StoreRowsOp : Tile_Op<"store_rows", [
    Tile_RowsMatch<"rows", "32">, Tile_RowsMatch<"mask", "1">]> {
  let summary = "scatters rows into a view";
  let description = [{
    The mirror image of `tile.load_rows`; masked rows are not written, and no two
    unmasked rows may be equal.

    Example, from `test/Tile/ops.mlir`:

    ```mlir
    tile.store_rows %k, %cache[%slot, %head, %c0, %c0] rows(%r) mask(%m) dims [2, 3]
      : tensor<64x64xf32>, !tile.view<?x8x?x64xf32>
    ```
  }];
  let arguments = (ins
    Tile_Tile:$tile,
    Arg<Tile_ViewType, "", [MemWrite]>:$view,
    Variadic<Index>:$indices,
    TensorOf<[I32]>:$rows,
    TensorOf<[I1]>:$mask,
    DenseI64ArrayAttr:$dims
  );
  let assemblyFormat = [{
    $tile `,` $view `[` $indices `]` `rows` `(` $rows `)` `mask` `(` $mask `)`
    `dims` $dims attr-dict `:` type($tile) `,` qualified(type($view))
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Arithmetic on whole tiles
//===----------------------------------------------------------------------===//

def Tile_DotOp : Tile_PureOp<"dot", [AllTypesMatch<["acc", "result"]>]> {
  let summary = "product of two matrices, plus an accumulator";
  let description = [{
        result[m, n] = acc[m, n] + Σ_k a[m, k] · b[k, n]

    `transpose_a` reads `a` as [k, m], `transpose_b` reads `b` as [n, k]. Sums
    are kept in the element type of the accumulator; `precision` says how f32
    operands enter (`fp32` unless stated).

    Example, from `test/Tile/ops.mlir`:

    ```mlir
    %s = tile.dot %q, %k, %zero precision split3 {transpose_b}
       : tensor<16x64xf32>, tensor<16x64xf32> -> tensor<16x16xf32>
    ```

    Lowers to register blocks on the CPU and to tensor-core products on a GPU.
  }];
  let arguments = (ins
    Tile_Matrix:$a,
    Tile_Matrix:$b,
    Tile_Matrix:$acc,
    DefaultValuedAttr<Tile_PrecisionAttr, "Precision::fp32">:$precision,
    UnitAttr:$transpose_a,
    UnitAttr:$transpose_b
  );
  let results = (outs Tile_Matrix:$result);
  let assemblyFormat = [{
    $a `,` $b `,` $acc (`precision` custom<Word>($precision)^)? attr-dict
    `:` type($a) `,` type($b) `->` type($result)
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Value":$a, "::mlir::Value":$b, "::mlir::Value":$acc,
                   CArg<"bool", "false">:$transposeA, CArg<"bool", "false">:$transposeB)>,
  ];
  let hasVerifier = 1;
}

class Tile_InferredOp<string mnemonic>
    : Tile_PureOp<mnemonic, [InferTypeOpAdaptor]>;

def Tile_ReduceOp : Tile_InferredOp<"reduce"> {
  let summary = "sum or maximum along a dim, which keeps size 1";
  let description = [{
    `max` gives NaN if any element is NaN; both accumulate in the element type.

    Example, from `test/Tile/ops.mlir`: `%m = tile.reduce max %s dim 1 : tensor<16x16xf32>`
    gives `tensor<16x1xf32>`.
  }];
  let arguments = (ins
    Tile_ReduceKindAttr:$kind,
    Tile_FloatTile:$input,
    ConfinedAttr<I64Attr, [IntNonNegative]>:$dim
  );
  let results = (outs Tile_FloatTile:$result);
  let assemblyFormat = "custom<Word>($kind) $input `dim` $dim attr-dict `:` type($input)";
}

def Tile_PrefixSumOp : Tile_PureOp<"prefix_sum", [SameOperandsAndResultType]> {
  let summary = "inclusive running sum along a dim";
  let description = [{
        result[t] = Σ_{m ≤ t} input[m]        (with `reverse`: m ≥ t)

    Example, from `test/Tile/ops.mlir`: `%g = tile.prefix_sum %x dim 0 : tensor<16x16xf32>`
  }];
  let arguments = (ins
    Tile_FloatTile:$input,
    ConfinedAttr<I64Attr, [IntNonNegative]>:$dim,
    UnitAttr:$reverse
  );
  let results = (outs Tile_FloatTile:$result);
  let assemblyFormat = "$input `dim` $dim attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def Tile_UnitLowerInverseOp
    : Tile_PureOp<"unit_lower_inverse", [SameOperandsAndResultType]> {
  let summary = "inverse of a unit lower triangular matrix";
  let description = [{
        result = (I + strict_lower(input))⁻¹

    Only the strict lower part is read; the result is unit lower triangular, with
    exact zeros above. Forward substitution: row i is e_i minus Σ_{j<i} input[i, j]
    times row j.

    Example, from `test/Tile/ops.mlir`: `%t = tile.unit_lower_inverse %a : tensor<16x16xf32>`
  }];
  let arguments = (ins Tile_Matrix:$input);
  let results = (outs Tile_Matrix:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Shape changes
//===----------------------------------------------------------------------===//

def Tile_SplatOp : Tile_PureOp<"splat", [
    TypesMatchWith<"the scalar has the element type of the tile", "tile", "scalar",
                   "::mlir::cast<::mlir::ShapedType>($_self).getElementType()">]> {
  let summary = "a scalar in every element";
  let description = [{
    Example, from `test/Tile/ops.mlir`: `%z = tile.splat %zero : tensor<16x32xf32>`
  }];
  let arguments = (ins Tile_Scalar:$scalar);
  let results = (outs Tile_Tile:$tile);
  let assemblyFormat = "$scalar attr-dict `:` type($tile)";
}

def Tile_IotaOp : Tile_PureOp<"iota"> {
  let summary = "index of each element along a dim";
  let description = [{
    Example, from `test/Tile/ops.mlir`: `%r = tile.iota dim 0 : tensor<64xi32>`
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$dim);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "`dim` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Tile_BroadcastOp : Tile_PureOp<"broadcast"> {
  let summary = "stretches dims of size 1";
  let description = [{
    Rank is kept; `tile.reshape` adds dims.

    Example, from `test/Tile/ops.mlir`:
    `%b = tile.broadcast %m : tensor<16x1xf32> to tensor<16x32xf32>`
  }];
  let arguments = (ins Tile_Tile:$input);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `to` type($result)";
  let hasVerifier = 1;
}

def Tile_ReshapeOp : Tile_PureOp<"reshape"> {
  let summary = "the same elements, row-major, in another shape";
  let description = [{
    Example, from `test/Tile/ops.mlir`:
    `%c = tile.reshape %x : tensor<1x4xf32> to tensor<4xf32>`
  }];
  let arguments = (ins Tile_Tile:$input);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `to` type($result)";
  let hasVerifier = 1;
}

def Tile_TransposeOp : Tile_InferredOp<"transpose"> {
  let summary = "permutes dims";
  let description = [{
    Dim d of the result is dim `permutation[d]` of the input.

    Example, from `test/Tile/ops.mlir`: `%t = tile.transpose %x [1, 0] : tensor<16x64xf32>`
  }];
  let arguments = (ins Tile_Tile:$input, DenseI64ArrayAttr:$permutation);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$input $permutation attr-dict `:` type($input)";
}

def Tile_SliceOp : Tile_InferredOp<"slice"> {
  let summary = "a range of one dim";
  let description = [{
    Example, from `test/Tile/ops.mlir`:
    `%h = tile.slice %x dim 1 offset 32 size 32 : tensor<16x64xf32>`
  }];
  let arguments = (ins
    Tile_Tile:$input,
    ConfinedAttr<I64Attr, [IntNonNegative]>:$dim,
    ConfinedAttr<I64Attr, [IntNonNegative]>:$offset,
    ConfinedAttr<I64Attr, [IntPositive]>:$size
  );
  let results = (outs Tile_Tile:$result);
  let assemblyFormat =
      "$input `dim` $dim `offset` $offset `size` $size attr-dict `:` type($input)";
}

def Tile_ConcatOp : Tile_InferredOp<"concat"> {
  let summary = "tiles side by side along a dim";
  let description = [{
    Example, from `test/Tile/ops.mlir`:
    `%x = tile.concat %a, %b dim 1 : tensor<16x32xf32>, tensor<16x32xf32>`
  }];
  let arguments = (ins
    Variadic<Tile_Tile>:$inputs,
    ConfinedAttr<I64Attr, [IntNonNegative]>:$dim
  );
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$inputs `dim` $dim attr-dict `:` type($inputs)";
}

#endif // HYBRID_TILE_TILE_OPS_TD
