//===- HopperTypes.td - the hopper dialect and its types -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TARGET_NVPTX_HOPPER_TYPES_TD
#define HYBRID_TARGET_NVPTX_HOPPER_TYPES_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def Hopper_Dialect : Dialect {
  let name = "hopper";
  let cppNamespace = "::hybrid::hopper";
  let summary = "what sm_90a has and `nvvm` lacks, at the level of warpgroups";
  let description = [{
    A `hopper.kernel` is the code of one thread block, written once per role: a
    role is some warpgroups (128 threads each) that run the same region. Inside,
    tiles are what one warpgroup holds: a tensor of 64 rows is spread over its
    registers as the accumulator of a warpgroup product, and `arith`, `math` and
    the shape and reduction ops of the `tile` dialect work on it. Scalars are the
    same in all threads of a role.

    The dialect has what the roles share: tiles in shared memory (`!hopper.buffer`,
    swizzled as the copy engine writes them and the tensor cores read them),
    barriers that count arrivals and bytes (`!hopper.barriers`), and products that
    run while the warpgroup goes on (`!hopper.flight`, a value that only another
    product or `hopper.product_wait` may use, so that no accumulator can be read
    too early).

    `hybrid-hopper-apply-schedules` makes kernels from tile programs that have a
    `tile.schedule` for `sm_90a`; `hybrid-hopper-lower-kernels` makes them code.
    Such a schedule may say in which order blocks start, by the attributes of
    `hopper.kernel`: `hopper.traversal`, `hopper.descending` (arrays of grid dims)
    and `hopper.group` (a number). Without them the last dim is the fastest.
    `hopper.persistent` makes blocks take several points, so that operands of the
    next one are copied while results of the last one are stored.
    The tests run kernels on the host, on a machine that knows barriers, copies
    and products in flight.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::hybrid::tile::TileDialect"];
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    static constexpr ::llvm::StringLiteral kTraversalAttr = "hopper.traversal",
        kDescendingAttr = "hopper.descending", kGroupAttr = "hopper.group",
        kPersistentAttr = "hopper.persistent";
  }];
}

class Hopper_Type<string name, string typeMnemonic>
    : TypeDef<Hopper_Dialect, name> {
  let mnemonic = typeMnemonic;
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

class Hopper_ShapedType<string name, string typeMnemonic>
    : Hopper_Type<name, typeMnemonic> {
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType);
  let builders = [
    TypeBuilderWithInferredContext<(ins
        "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType), [{
      return $_get(elementType.getContext(), shape, elementType);
    }]>,
  ];
}

def Hopper_MapType : Hopper_ShapedType<"Map", "map"> {
  let summary = "tensor map of a view: what the copy engine knows of it";
  let description = [{
    A kernel parameter of 128 bytes by value, which the runtime encodes for each
    launch from the view's address, sizes and strides. The shape is the box that
    one copy reads, a size per dim of the view; the last one is 64 elements of 16
    bits, 128 bytes, because boxes are swizzled in rows of 128 bytes.

    Example, from `test/Target/NVPTX/hopper/ops.mlir`: `!hopper.map<128x1x64xbf16>`
  }];
}

def Hopper_BufferType : Hopper_ShapedType<"Buffer", "buffer"> {
  let summary = "copies of a tile in shared memory";
  let description = [{
    The shape is copies x rows x columns. A copy is one panel for each 64 columns,
    each panel `rows` x 128 bytes, one after another. In a panel the 16-byte piece
    p of row r lies at piece p xor (r mod 8) of that row (the 128-byte swizzle), so
    that eight rows of a column lie in different banks. Panels start at multiples
    of 1024 bytes.

    Example, from `test/Target/NVPTX/hopper/ops.mlir`: `!hopper.buffer<4x128x64xbf16>`
  }];
  let extraClassDeclaration = [{
    /// Columns of a panel: 128 bytes of 16-bit elements.
    static constexpr int64_t kPanelColumns = 64;
    int64_t getCopies() const { return getShape()[0]; }
    int64_t getRows() const { return getShape()[1]; }
    int64_t getColumns() const { return getShape()[2]; }
    int64_t getPanels() const { return getColumns() / kPanelColumns; }
    int64_t getPanelBytes() const { return getRows() * 2 * kPanelColumns; }
    int64_t getCopyBytes() const { return getPanels() * getPanelBytes(); }
  }];
}

def Hopper_MatrixType : Hopper_ShapedType<"Matrix", "matrix"> {
  let summary = "operand of a product in shared memory";
  let description = [{
    The shape is rows x columns x rows of the buffer that they are a part of, which
    gives the distance of its panels. Becomes the descriptor that the instruction
    reads: address, distances and swizzle in 64 bits.

    Example, from `test/Target/NVPTX/hopper/ops.mlir`: `!hopper.matrix<64x64x128xbf16>`
  }];
  let extraClassDeclaration = [{
    int64_t getRows() const { return getShape()[0]; }
    int64_t getColumns() const { return getShape()[1]; }
    int64_t getPanelRows() const { return getShape()[2]; }
  }];
}

def Hopper_FlightType : Hopper_ShapedType<"Flight", "flight"> {
  let summary = "accumulator of a product that may still run";
  let description = [{
    Becomes the tile of the same shape by `hopper.product_wait`, or the accumulator
    of a further product. Nothing else may use it.

    Example, from `test/Target/NVPTX/hopper/ops.mlir`: `!hopper.flight<64x128xf32>`
  }];
}

def Hopper_BarriersType : Hopper_Type<"Barriers", "barriers"> {
  let summary = "barriers in shared memory, one per copy of a buffer";
  let description = [{
    Each counts arrivals and bytes. A phase ends when all arrivals that the barrier
    was made for have come and all expected bytes have been written; then the next
    one begins.

    Example, from `test/Target/NVPTX/hopper/ops.mlir`: `!hopper.barriers<4>`
  }];
  let parameters = (ins "int64_t":$count);
}

#endif // HYBRID_TARGET_NVPTX_HOPPER_TYPES_TD
