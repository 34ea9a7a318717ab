//===- TileOps.cpp - memory access and values of the tile dialect --------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Tile/TileOps.h"

#include "hybrid/Hybrid/WordSyntax.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace hybrid::tile;

#define GET_OP_CLASSES
#include "hybrid/Tile/TileOps.cpp.inc"

Type hybrid::tile::rowVectorType(Type tile, unsigned width) {
  auto tensor = dyn_cast<RankedTensorType>(tile);
  int64_t rows = tensor && tensor.getRank() > 0 ? tensor.getDimSize(0) : 1;
  return RankedTensorType::get({rows},
                               IntegerType::get(tile.getContext(), width));
}

//===----------------------------------------------------------------------===//
// Global memory
//===----------------------------------------------------------------------===//

static LogicalResult verifyIndices(Operation *op, ViewType view,
                                   size_t indices) {
  if (indices == static_cast<size_t>(view.getRank()))
    return success();
  return op->emitOpError("needs one index per view dim: the view has ")
         << view.getRank() << " dims, got " << indices << " indices";
}

/// What all block accesses have in common: `dims` ascending and inside the
/// view, one per tile dim, the same element type, and a tile that fits into
/// dims of known size.
static LogicalResult verifyBlock(Operation *op, ViewType view, size_t indices,
                                 RankedTensorType tile,
                                 ArrayRef<int64_t> dims) {
  if (failed(verifyIndices(op, view, indices)))
    return failure();
  if (tile.getElementType() != view.getElementType())
    return op->emitOpError("tile holds ")
           << tile.getElementType() << " but the view holds "
           << view.getElementType();
  if (static_cast<int64_t>(dims.size()) != tile.getRank())
    return op->emitOpError("tile has ")
           << tile.getRank() << " dims but 'dims' names " << dims.size()
           << "; name one view dim per tile dim";
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] < 0 || dims[d] >= view.getRank())
      return op->emitOpError("'dims' names view dim ")
             << dims[d] << ", but the view has " << view.getRank() << " dims";
    if (d > 0 && dims[d] <= dims[d - 1])
      return op->emitOpError("'dims' must ascend, got ")
             << dims[d - 1] << " before " << dims[d]
             << "; transpose the tile instead";
  }
  return success();
}

/// A dim without a limit must lie inside the view, which is seen at once where
/// the size is static.
static LogicalResult verifyExtent(Operation *op, ViewType view,
                                  RankedTensorType tile, ArrayRef<int64_t> dims,
                                  size_t firstUnlimited) {
  for (size_t d = firstUnlimited; d < dims.size(); ++d) {
    int64_t size = view.getShape()[dims[d]];
    if (!ShapedType::isDynamic(size) && tile.getDimSize(d) > size)
      return op->emitOpError("tile dim ")
             << d << " has size " << tile.getDimSize(d) << " but view dim "
             << dims[d] << " has size " << size
             << "; give a limit or a smaller tile";
  }
  return success();
}

static LogicalResult verifyLimits(Operation *op, RankedTensorType tile,
                                  size_t limits) {
  if (limits <= static_cast<size_t>(tile.getRank()))
    return success();
  return op->emitOpError("has ")
         << limits << " limits for a tile of " << tile.getRank()
         << " dims; there is at most one per tile dim";
}

template <typename BlockOp>
static LogicalResult verifyLimitedBlock(BlockOp op) {
  ViewType view = op.getView().getType();
  RankedTensorType tile = op.getTile().getType();
  if (failed(
          verifyBlock(op, view, op.getIndices().size(), tile, op.getDims())) ||
      failed(verifyLimits(op, tile, op.getLimits().size())))
    return failure();
  return verifyExtent(op, view, tile, op.getDims(), op.getLimits().size());
}

LogicalResult LoadOp::verify() { return verifyLimitedBlock(*this); }
LogicalResult StoreOp::verify() { return verifyLimitedBlock(*this); }
LogicalResult AccumulateOp::verify() { return verifyLimitedBlock(*this); }

/// Rows are bounded by their mask, so the first tile dim may exceed the view's.
template <typename RowsOp> static LogicalResult verifyRows(RowsOp op) {
  ViewType view = op.getView().getType();
  RankedTensorType tile = op.getTile().getType();
  if (failed(verifyBlock(op, view, op.getIndices().size(), tile, op.getDims())))
    return failure();
  return verifyExtent(op, view, tile, op.getDims(), /*firstUnlimited=*/1);
}

LogicalResult LoadRowsOp::verify() { return verifyRows(*this); }
LogicalResult StoreRowsOp::verify() { return verifyRows(*this); }

LogicalResult LoadScalarOp::verify() {
  return verifyIndices(*this, getView().getType(), getIndices().size());
}

LogicalResult StoreScalarOp::verify() {
  return verifyIndices(*this, getView().getType(), getIndices().size());
}

LogicalResult DimOp::verify() {
  int64_t rank = getView().getType().getRank();
  if (getDim() < static_cast<uint64_t>(rank))
    return success();
  return emitOpError("asks for dim ")
         << getDim() << " of a view with " << rank << " dims";
}

//===----------------------------------------------------------------------===//
// Arithmetic on whole tiles
//===----------------------------------------------------------------------===//

void DotOp::build(OpBuilder &builder, OperationState &state, Value a, Value b,
                  Value acc, bool transposeA, bool transposeB) {
  build(builder, state, acc.getType(), a, b, acc, Precision::fp32, transposeA,
        transposeB);
}

LogicalResult DotOp::verify() {
  RankedTensorType a = getA().getType(), b = getB().getType(),
                   acc = getAcc().getType();
  int64_t m = a.getDimSize(getTransposeA() ? 1 : 0),
          ka = a.getDimSize(getTransposeA() ? 0 : 1);
  int64_t kb = b.getDimSize(getTransposeB() ? 1 : 0),
          n = b.getDimSize(getTransposeB() ? 0 : 1);
  if (ka != kb)
    return emitOpError("sums over ")
           << ka << " columns of the left and " << kb
           << " rows of the right operand; they must be equal";
  if (acc.getDimSize(0) != m || acc.getDimSize(1) != n)
    return emitOpError("gives ")
           << m << "x" << n << " but the accumulator is " << acc.getDimSize(0)
           << "x" << acc.getDimSize(1);
  if (a.getElementType() != b.getElementType())
    return emitOpError("multiplies ")
           << a.getElementType() << " by " << b.getElementType()
           << "; convert one of them first";
  if (acc.getElementTypeBitWidth() < a.getElementTypeBitWidth())
    return emitOpError("accumulates ")
           << a.getElementType() << " in the narrower " << acc.getElementType();
  return success();
}

/// Reports a dim outside of the tile at `location`.
static LogicalResult checkDim(std::optional<Location> location,
                              RankedTensorType tile, uint64_t dim) {
  if (dim < static_cast<uint64_t>(tile.getRank()))
    return success();
  return emitOptionalError(location, "dim ", dim, " is outside of ", tile,
                           ", which has ", tile.getRank(), " dims");
}

static RankedTensorType withDim(RankedTensorType tile, uint64_t dim,
                                int64_t size) {
  SmallVector<int64_t> shape(tile.getShape());
  shape[dim] = size;
  return RankedTensorType::get(shape, tile.getElementType());
}

LogicalResult ReduceOp::inferReturnTypes(MLIRContext *context,
                                         std::optional<Location> location,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  auto tile = cast<RankedTensorType>(adaptor.getInput().getType());
  if (failed(checkDim(location, tile, adaptor.getDim())))
    return failure();
  types.push_back(withDim(tile, adaptor.getDim(), 1));
  return success();
}

LogicalResult PrefixSumOp::verify() {
  return checkDim(getLoc(), getInput().getType(), getDim());
}

LogicalResult UnitLowerInverseOp::verify() {
  ArrayRef<int64_t> shape = getInput().getType().getShape();
  if (shape[0] == shape[1])
    return success();
  return emitOpError("needs a square matrix, got ")
         << shape[0] << "x" << shape[1];
}

//===----------------------------------------------------------------------===//
// Shape changes
//===----------------------------------------------------------------------===//

LogicalResult IotaOp::verify() {
  if (!getResult().getType().getElementType().isInteger(32))
    return emitOpError("gives i32, not ")
           << getResult().getType().getElementType();
  return checkDim(getLoc(), getResult().getType(), getDim());
}

LogicalResult BroadcastOp::verify() {
  RankedTensorType from = getInput().getType(), to = getResult().getType();
  if (from.getElementType() != to.getElementType())
    return emitOpError("changes the element type from ")
           << from.getElementType() << " to " << to.getElementType();
  if (from.getRank() != to.getRank())
    return emitOpError("changes the rank from ")
           << from.getRank() << " to " << to.getRank()
           << "; use tile.reshape first";
  for (int64_t d = 0; d < from.getRank(); ++d)
    if (from.getDimSize(d) != 1 && from.getDimSize(d) != to.getDimSize(d))
      return emitOpError("stretches dim ")
             << d << " from " << from.getDimSize(d) << " to "
             << to.getDimSize(d) << "; only size 1 stretches";
  return success();
}

LogicalResult ReshapeOp::verify() {
  RankedTensorType from = getInput().getType(), to = getResult().getType();
  if (from.getElementType() != to.getElementType())
    return emitOpError("changes the element type from ")
           << from.getElementType() << " to " << to.getElementType();
  if (from.getNumElements() != to.getNumElements())
    return emitOpError("changes the number of elements from ")
           << from.getNumElements() << " to " << to.getNumElements();
  return success();
}

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> location,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  auto tile = cast<RankedTensorType>(adaptor.getInput().getType());
  ArrayRef<int64_t> permutation = adaptor.getPermutation();
  if (static_cast<int64_t>(permutation.size()) != tile.getRank() ||
      !isPermutationVector(permutation))
    return emitOptionalError(location, "a permutation of ", permutation.size(),
                             " entries does not order the ", tile.getRank(),
                             " dims of ", tile);
  types.push_back(RankedTensorType::get(
      applyPermutation(tile.getShape(), permutation), tile.getElementType()));
  return success();
}

LogicalResult SliceOp::inferReturnTypes(MLIRContext *context,
                                        std::optional<Location> location,
                                        Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  auto tile = cast<RankedTensorType>(adaptor.getInput().getType());
  if (failed(checkDim(location, tile, adaptor.getDim())))
    return failure();
  // Compared without the sum, which may be no 64-bit number.
  int64_t offset = adaptor.getOffset(),
          size = tile.getDimSize(adaptor.getDim());
  if (offset > size || static_cast<int64_t>(adaptor.getSize()) > size - offset)
    return emitOptionalError(location, "slice of ", adaptor.getSize(), " from ",
                             offset, " on ends behind dim ", adaptor.getDim(),
                             ", which has size ", size);
  types.push_back(withDim(tile, adaptor.getDim(), adaptor.getSize()));
  return success();
}

LogicalResult ConcatOp::inferReturnTypes(MLIRContext *context,
                                         std::optional<Location> location,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  if (adaptor.getInputs().empty())
    return emitOptionalError(location, "concat needs at least one tile");
  auto first = cast<RankedTensorType>(adaptor.getInputs().front().getType());
  uint64_t dim = adaptor.getDim();
  if (failed(checkDim(location, first, dim)))
    return failure();
  int64_t size = 0;
  for (Value input : adaptor.getInputs()) {
    auto tile = cast<RankedTensorType>(input.getType());
    if (tile.getRank() != first.getRank() ||
        withDim(tile, dim, 1) != withDim(first, dim, 1))
      return emitOptionalError(location, "cannot join ", first, " and ", tile,
                               " along dim ", dim,
                               "; the other dims must be equal");
    size += tile.getDimSize(dim);
  }
  types.push_back(withDim(first, dim, size));
  return success();
}
