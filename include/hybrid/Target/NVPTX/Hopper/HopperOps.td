//===- HopperOps.td - operations of the hopper dialect -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TARGET_NVPTX_HOPPER_OPS_TD
#define HYBRID_TARGET_NVPTX_HOPPER_OPS_TD

include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "hybrid/Target/NVPTX/Hopper/HopperTypes.td"
include "hybrid/Tile/TileTypes.td"

class Hopper_Op<string mnemonic, list<Trait> traits = []>
    : Op<Hopper_Dialect, mnemonic, traits>;

/// Tiles that one warpgroup holds in registers.
def Hopper_Tile : StaticShapeTensorOf<[AnyFloat, I1, I32]>;

//===----------------------------------------------------------------------===//
// Kernels and roles
//===----------------------------------------------------------------------===//

def Hopper_KernelOp : Hopper_Op<"kernel", [IsolatedFromAbove, Symbol, SingleBlock]> {
  let summary = "the code of one thread block";
  let description = [{
    Arguments are the views of the program that it was made from; `grid` is that
    program's, all of its dims parallel. The body declares tensor maps, buffers and
    barriers and ends with one `hopper.roles`.

    A block takes the point of the grid that `traversal` gives for its number: the
    dims from the slowest to the fastest. Dims in `descending` run from their last
    index to the first, so that long work starts early. With `group` the fastest
    dim runs in groups of so many, inside each of which the next slower dim runs
    whole: blocks that run together then share operands in the second-level cache.

    Example, from `test/Target/NVPTX/hopper/ops.mlir`:

    ```mlir
    hopper.kernel @product(%a: !tile.view<?x128xbf16>, %c: !tile.view<?x128xf32>)
        grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128, 1)>
        traversal [1, 0] descending [] group 4 {
    ```

    Lowers to a kernel with the views and the grid as its first parameter and one
    parameter for each tensor map.
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    AffineMapAttr:$grid,
    DenseI64ArrayAttr:$traversal,
    DenseI64ArrayAttr:$descending,
    DefaultValuedAttr<I64Attr, "1">:$group
  );
  let regions = (region SizedRegion<1>:$body);
  let extraClassDeclaration = [{
    ::mlir::Block &getBlock() { return getBody().front(); }
    ::mlir::Block::BlockArgListType getViews() { return getBlock().getArguments(); }
    unsigned getGridRank() { return getGrid().getNumResults(); }
    /// Of all roles.
    int64_t getNumWarpgroups();
    /// Whether its blocks take several points of the grid.
    bool isPersistent();
  }];
  let skipDefaultBuilders = 1;
  let builders = [
    OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::AffineMap":$grid,
                   "::llvm::ArrayRef<int64_t>":$traversal,
                   "::llvm::ArrayRef<int64_t>":$descending, "int64_t":$group,
                   "::mlir::TypeRange":$views)>,
  ];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Hopper_RolesOp : Hopper_Op<"roles", [
    HasParent<"KernelOp">, Terminator, NoRegionArguments]> {
  let summary = "who does what in a block";
  let description = [{
    A region per role. A role has `warpgroups` warpgroups of `registers` registers
    per thread (`setmaxnreg`; multiples of 8 from 24 to 240, and together no more
    than the 65536 of a multiprocessor). A role that is `single` is run by one
    thread of its warpgroup: it issues copies. The others are run by all of their
    threads. Regions see the values of the kernel's body, nothing of each other.

    Example, from `test/Target/NVPTX/hopper/ops.mlir`:

    ```mlir
    hopper.roles [1, 2] [24, 240] [true, false] {
      hopper.yield
    }, {
      %w = hopper.warpgroup
      hopper.yield
    }
    ```
  }];
  let arguments = (ins
    DenseI64ArrayAttr:$warpgroups,
    DenseI64ArrayAttr:$registers,
    DenseBoolArrayAttr:$single
  );
  let regions = (region VariadicRegion<SizedRegion<1>>:$bodies);
  let assemblyFormat = "$warpgroups $registers $single $bodies attr-dict";
  let hasVerifier = 1;
}

def Hopper_YieldOp : Hopper_Op<"yield", [Pure, Terminator, HasParent<"RolesOp">]> {
  let summary = "end of a role";
  let description = [{
    Example, from `test/Target/NVPTX/hopper/ops.mlir`: `hopper.yield`
  }];
  let assemblyFormat = "attr-dict";
}

def Hopper_IdOp : Hopper_Op<"id", [Pure]> {
  let summary = "index of a point along a grid dim";
  let description = [{
    Of the point that has the number `task` in the order of `hopper.kernel`; without
    it, of the block's.

    Example, from `test/Target/NVPTX/hopper/ops.mlir`: `%block = hopper.id 0`
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$dim,
                       Optional<Index>:$task);
  let results = (outs Index:$result);
  let assemblyFormat = "$dim (`of` $task^)? attr-dict";
  let hasVerifier = 1;
}

class Hopper_CountOp<string mnemonic> : Hopper_Op<mnemonic, [Pure]> {
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def Hopper_TasksOp : Hopper_CountOp<"tasks"> {
  let summary = "number of points of the grid";
  let description = [{
    Example, from `test/Target/NVPTX/hopper/ops.mlir`: `%tasks = hopper.tasks`
  }];
}

def Hopper_BlockNumberOp : Hopper_CountOp<"block"> {
  let summary = "number of this block";
  let description = [{
    Example, from `test/Target/NVPTX/hopper/ops.mlir`: `%first = hopper.block`
  }];
}

def Hopper_BlockCountOp : Hopper_CountOp<"blocks"> {
  let summary = "number of blocks that were started";
  let description = [{
    A kernel with this op is persistent: it may be started with fewer blocks than
    the grid has points, and a block takes the points `hopper.block`,
    `hopper.block` + `hopper.blocks` and so on.

    Example, from `test/Target/NVPTX/hopper/ops.mlir`: `%step = hopper.blocks`
  }];
}

def Hopper_WarpgroupOp : Hopper_Op<"warpgroup", [Pure]> {
  let summary = "number of this warpgroup in its role";
  let description = [{
    Example, from `test/Target/NVPTX/hopper/ops.mlir`: `%w = hopper.warpgroup`
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// What roles share
//===----------------------------------------------------------------------===//

class Hopper_DeclarationOp<string mnemonic, list<Trait> traits = []>
    : Hopper_Op<mnemonic, !listconcat(traits, [HasParent<"KernelOp">])>;

def Hopper_TensorMapOp : Hopper_DeclarationOp<"tensor_map"> {
  let summary = "tensor map of a view, a parameter of the kernel";
  let description = [{
    Example, from `test/Target/NVPTX/hopper/ops.mlir`:
    `%m = hopper.tensor_map %a : !tile.view<?x128xbf16> -> !hopper.map<128x64xbf16>`

    The runtime passes 128 bytes by value, aligned to 64, in the order of the ops.
  }];
  let arguments = (ins Tile_ViewType:$view);
  let results = (outs Hopper_MapType:$map);
  let assemblyFormat = "$view attr-dict `:` qualified(type($view)) `->` qualified(type($map))";
  let hasVerifier = 1;
}

def Hopper_AllocateOp : Hopper_DeclarationOp<"allocate"> {
  let summary = "a buffer in shared memory";
  let description = [{
    Example, from `test/Target/NVPTX/hopper/ops.mlir`:
    `%ring = hopper.allocate : !hopper.buffer<4x128x64xbf16>`
  }];
  let results = (outs Hopper_BufferType:$buffer);
  let assemblyFormat = "attr-dict `:` qualified(type($buffer))";
}

def Hopper_MakeBarriersOp : Hopper_DeclarationOp<"make_barriers"> {
  let summary = "barriers, ready for their first phase";
  let description = [{
    `arrivals` is how many arrivals end a phase: one for each `hopper.expect`, four
    for each `hopper.arrive` (one per warp).

    Example, from `test/Target/NVPTX/hopper/ops.mlir`:
    `%full = hopper.make_barriers arrivals 1 : !hopper.barriers<4>`
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntPositive]>:$arrivals);
  let results = (outs Hopper_BarriersType:$barriers);
  let assemblyFormat = "`arrivals` $arrivals attr-dict `:` qualified(type($barriers))";
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

def Hopper_ExpectOp : Hopper_Op<"expect"> {
  let summary = "arrives at a barrier and announces bytes";
  let description = [{
    The phase does not end before copies have written so many bytes.

    Example, from `test/Target/NVPTX/hopper/ops.mlir`:
    `hopper.expect %full[%slot] bytes 16384 : !hopper.barriers<4>`
  }];
  let arguments = (ins Hopper_BarriersType:$barriers, I32:$index,
                       ConfinedAttr<I64Attr, [IntPositive]>:$bytes);
  let assemblyFormat = "$barriers `[` $index `]` `bytes` $bytes attr-dict `:` qualified(type($barriers))";
  let hasVerifier = 1;
}

def Hopper_ArriveOp : Hopper_Op<"arrive"> {
  let summary = "arrives at a barrier, once per warp";
  let description = [{
    A warp arrives by itself, because warps of a warpgroup do not wait for each
    other: what the first one has read, the last one may not have.

    Example, from `test/Target/NVPTX/hopper/ops.mlir`:
    `hopper.arrive %empty[%slot] : !hopper.barriers<4>`
  }];
  let arguments = (ins Hopper_BarriersType:$barriers, I32:$index);
  let assemblyFormat = "$barriers `[` $index `]` attr-dict `:` qualified(type($barriers))";
  let hasVerifier = 1;
}

def Hopper_WaitOp : Hopper_Op<"wait"> {
  let summary = "waits for the end of a phase";
  let description = [{
    Goes on when the phase of that parity has ended: phases are numbered from 0, and
    of a new barrier the phase before the first one, of parity 1, counts as ended.

    Example, from `test/Target/NVPTX/hopper/ops.mlir`:
    `hopper.wait %full[%slot] parity %parity : !hopper.barriers<4>`
  }];
  let arguments = (ins Hopper_BarriersType:$barriers, I32:$index, I32:$parity);
  let assemblyFormat = "$barriers `[` $index `]` `parity` $parity attr-dict `:` qualified(type($barriers))";
}

class Hopper_NamedBarrierOp<string mnemonic> : Hopper_Op<mnemonic> {
  let arguments = (ins I32:$number, ConfinedAttr<I64Attr, [IntPositive]>:$threads);
  let assemblyFormat = "$number `threads` $threads attr-dict";
  let hasVerifier = 1;
}

def Hopper_SyncOp : Hopper_NamedBarrierOp<"sync"> {
  let summary = "arrives at a named barrier and waits for the others";
  let description = [{
    A block has barriers 1 to 15 (0 is that of the whole block). It opens when
    `threads` threads have come, by this op or by `hopper.signal`.

    Example, from `test/Target/NVPTX/hopper/ops.mlir`: `hopper.sync %n threads 256`
  }];
}

def Hopper_SignalOp : Hopper_NamedBarrierOp<"signal"> {
  let summary = "arrives at a named barrier and goes on";
  let description = [{
    Example, from `test/Target/NVPTX/hopper/ops.mlir`: `hopper.signal %n threads 256`
  }];
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

def Hopper_TensorLoadOp : Hopper_Op<"tensor_load"> {
  let summary = "starts copying a tile into a buffer";
  let description = [{
    The copy engine reads the tile at the indices (one per dim of the view; the
    tile's rows and columns run along `dims`), writes it into a copy of the buffer,
    a box per panel, and counts the bytes at the barrier. Elements outside of the
    view become 0; they count as written.

    Example, from `test/Target/NVPTX/hopper/ops.mlir`:

    ```mlir
    hopper.tensor_load %m[%row, %column] dims [0, 1] to %ring[%slot] signals %full[%slot]
      : !hopper.map<128x64xbf16>, !hopper.buffer<4x128x64xbf16>, !hopper.barriers<4>
    ```
  }];
  let arguments = (ins
    Hopper_MapType:$map, Variadic<Index>:$indices, DenseI64ArrayAttr:$dims,
    Hopper_BufferType:$buffer, I32:$copy,
    Hopper_BarriersType:$barriers, I32:$barrier
  );
  let assemblyFormat = [{
    $map `[` $indices `]` `dims` $dims `to` $buffer `[` $copy `]`
    `signals` $barriers `[` $barrier `]` attr-dict
    `:` qualified(type($map)) `,` qualified(type($buffer)) `,` qualified(type($barriers))
  }];
  let hasVerifier = 1;
}

def Hopper_ClearRowsOp : Hopper_Op<"clear_rows"> {
  let summary = "zeroes the last rows of a copy of a buffer";
  let description = [{
    Rows from `first` on become 0, written by the threads of the role together and
    fenced for the tensor cores (`fence.proxy.async`). Others see it after a
    `hopper.sync`.

    Example, from `test/Target/NVPTX/hopper/ops.mlir`:
    `hopper.clear_rows %ring[%slot] from %first : !hopper.buffer<4x128x64xbf16>`
  }];
  let arguments = (ins Hopper_BufferType:$buffer, I32:$copy, I32:$first);
  let assemblyFormat = "$buffer `[` $copy `]` `from` $first attr-dict `:` qualified(type($buffer))";
  let hasVerifier = 1;
}

def Hopper_SubmatrixOp : Hopper_Op<"submatrix", [Pure]> {
  let summary = "a part of a buffer as the operand of a product";
  let description = [{
    Rows start at `row`, a multiple of 8. Columns start at `column`, a multiple of
    64, where whole panels begin; without it the part has all columns.

    Example, from `test/Target/NVPTX/hopper/ops.mlir`:
    `%left = hopper.submatrix %ring[%slot] row %r : !hopper.buffer<4x128x64xbf16> -> !hopper.matrix<64x64x128xbf16>`
  }];
  let arguments = (ins Hopper_BufferType:$buffer, I32:$copy, I32:$row,
                       Optional<I32>:$column);
  let results = (outs Hopper_MatrixType:$matrix);
  let assemblyFormat = [{
    $buffer `[` $copy `]` `row` $row (`column` $column^)? attr-dict
    `:` qualified(type($buffer)) `->` qualified(type($matrix))
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

def Hopper_ProductFenceOp : Hopper_Op<"product_fence"> {
  let summary = "makes registers ready for products";
  let description = [{
    Needed before a product whose accumulator or left operand was written by
    anything but a product (`wgmma.fence`).

    Example, from `test/Target/NVPTX/hopper/ops.mlir`: `hopper.product_fence`
  }];
  let assemblyFormat = "attr-dict";
}

def Hopper_ProductOp : Hopper_Op<"product"> {
  let summary = "starts a product of the warpgroup";
  let description = [{
        result[m, n] = acc[m, n] + Σ_k a[m, k] · b[k, n]

    m has 64 values. `transpose_a` reads a as [k, m], `transpose_b` b as [n, k]; b
    is in shared memory, a there or in registers, from where it cannot be read
    transposed. Without an accumulator the sum starts at 0. Operands are bf16
    or f16, sums are f32 and rounded toward zero inside of the tensor core. One
    instruction (`wgmma.mma_async`) per 16 of k.

    Example, from `test/Target/NVPTX/hopper/ops.mlir`:

    ```mlir
    %s = hopper.product %left, %right {transpose_b}
      : !hopper.matrix<64x64x128xbf16>, !hopper.matrix<128x64x128xbf16> -> !hopper.flight<64x128xf32>
    ```
  }];
  let arguments = (ins
    AnyTypeOf<[Hopper_MatrixType, Hopper_Tile]>:$a,
    Hopper_MatrixType:$b,
    Optional<AnyTypeOf<[Hopper_FlightType, Hopper_Tile]>>:$acc,
    UnitAttr:$transpose_a,
    UnitAttr:$transpose_b
  );
  let results = (outs Hopper_FlightType:$result);
  let assemblyFormat = [{
    $a `,` $b (`plus` $acc^ `:` qualified(type($acc)))? attr-dict
    `:` qualified(type($a)) `,` qualified(type($b)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Hopper_AccumulatorOp : Hopper_Op<"accumulator", [Pure]> {
  let summary = "a tile as the first accumulator of a sum of products";
  let description = [{
    So that a loop can carry a sum that is in flight.

    Example, from `test/Target/NVPTX/hopper/ops.mlir`:
    `%f = hopper.accumulator %zero : tensor<64x128xf32> -> !hopper.flight<64x128xf32>`
  }];
  let arguments = (ins Hopper_Tile:$tile);
  let results = (outs Hopper_FlightType:$flight);
  let assemblyFormat = "$tile attr-dict `:` type($tile) `->` qualified(type($flight))";
  let hasVerifier = 1;
}

def Hopper_ProductCommitOp : Hopper_Op<"product_commit"> {
  let summary = "ends a group of products";
  let description = [{
    `hopper.product_wait` counts groups.

    Example, from `test/Target/NVPTX/hopper/ops.mlir`: `hopper.product_commit`
  }];
  let assemblyFormat = "attr-dict";
}

def Hopper_ProductWaitOp : Hopper_Op<"product_wait"> {
  let summary = "waits until few groups of products are left";
  let description = [{
    At most the `pending` last groups may still run; the operands, made by earlier
    ones, become tiles.

    Example, from `test/Target/NVPTX/hopper/ops.mlir`:
    `%t = hopper.product_wait %s pending 0 : !hopper.flight<64x128xf32> -> tensor<64x128xf32>`
  }];
  let arguments = (ins Variadic<Hopper_FlightType>:$flights,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$pending);
  let results = (outs Variadic<Hopper_Tile>:$tiles);
  let assemblyFormat = [{
    ($flights^)? `pending` $pending attr-dict (`:` qualified(type($flights))^ `->` qualified(type($tiles)))?
  }];
  let hasVerifier = 1;
}

#endif // HYBRID_TARGET_NVPTX_HOPPER_OPS_TD
