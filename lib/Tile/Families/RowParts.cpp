//===- RowParts.cpp - parts of rows that a program makes itself -----------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowPartEmitter.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::tile;

using Parts = SmallVector<RowPart>;

//===----------------------------------------------------------------------===//
// Which parts
//===----------------------------------------------------------------------===//

static RankedTensorType tensorOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static bool hasRows(Value value) {
  RankedTensorType type = tensorOf(value);
  return type.getRank() > 0 && type.isDynamicDim(0);
}

/// Sizes of a row: all but the tokens.
static ArrayRef<int64_t> rowSizes(Value value) {
  return tensorOf(value).getShape().drop_front(hasRows(value) ? 1 : 0);
}

static int64_t rowElements(Value value) {
  return ShapedType::getNumElements(rowSizes(value));
}

/// The part of `y`, which is stretched to the sizes of `x`.
static std::optional<RowPart> stretchedPart(Value x, Value y, RowPart part,
                                            const HeadRow &row) {
  int64_t elements = rowElements(y);
  if (elements == rowElements(x))
    return part;
  if (elements == 1)
    return RowPart::Single;
  ArrayRef<int64_t> of = rowSizes(x);
  if (part != RowPart::Elements || of.size() != 2 || of.back() != row.dim)
    return std::nullopt;
  if (rowSizes(y).back() == 1 && elements == row.heads)
    return RowPart::Heads;
  if (rowSizes(y).back() == row.dim && elements == row.dim)
    return RowPart::Columns;
  return std::nullopt;
}

/// Whether the part holds all that the last dim of `x` has.
static bool holdsLastDim(Value x, RowPart part, const HeadRow &row) {
  if (part == RowPart::All)
    return rowSizes(x).size() == 1;
  return part == RowPart::Elements && row.width == row.dim &&
         rowSizes(x).back() == row.dim;
}

std::optional<Parts> tile::operandParts(Operation *op, RowPart part,
                                        const HeadRow &row) {
  auto maybe = [](std::optional<RowPart> first,
                  std::optional<RowPart> second) -> std::optional<Parts> {
    if (!first || !second)
      return std::nullopt;
    return Parts{*first, *second};
  };
  auto ifWhole = [&](Value x) -> std::optional<Parts> {
    if (!holdsLastDim(x, part, row))
      return std::nullopt;
    return Parts(op->getNumOperands(), part);
  };
  return TypeSwitch<Operation *, std::optional<Parts>>(op)
      .Case<AddOp, SubOp, MulOp>([&](auto binary) {
        Value a = binary->getOperand(0);
        return maybe(part, stretchedPart(a, binary->getOperand(1), part, row));
      })
      .Case<ScaleOp, LogNScaleOp, SiluOp, SigmoidOp, LogSigmoidOp, SoftplusOp,
            hybrid::ExpOp, NegOp, hybrid::ReshapeOp, FillOp>(
          [&](Operation *same) { return Parts(same->getNumOperands(), part); })
      .Case([&](CastOp cast) -> std::optional<Parts> {
        if (cast.isParameterCopy())
          return std::nullopt;
        return Parts{part};
      })
      .Case([&](NormalizeOp norm) { return ifWhole(norm.getX()); })
      .Case([&](RotaryOp rotary) { return ifWhole(rotary.getX()); })
      .Case([&](ReduceDimOp sum) -> std::optional<Parts> {
        bool isHead = part == RowPart::Heads && row.width == row.dim &&
                      rowSizes(sum.getX()).back() == row.dim;
        if (!isHead)
          return std::nullopt;
        return Parts{RowPart::Elements};
      })
      .Default([](Operation *) { return std::nullopt; });
}

/// Whether the part of `value` is one block of its view.
static bool canLoad(Value value, RowPart part, const HeadRow &row) {
  ArrayRef<int64_t> sizes = rowSizes(value);
  int64_t elements = rowElements(value);
  switch (part) {
  case RowPart::Elements:
    return elements == row.heads * row.dim &&
           (sizes.size() == 1 ||
            (sizes.size() == 2 && sizes.back() == row.dim));
  case RowPart::Heads:
    return elements == row.heads &&
           (sizes.size() == 1 || (sizes.size() == 2 && sizes.back() == 1));
  case RowPart::Columns:
    return elements == row.dim && sizes.size() == 1;
  case RowPart::Single:
    return elements == 1 && sizes.size() == 1;
  case RowPart::All:
    return sizes.size() == 1;
  }
  llvm_unreachable("a part is one of these");
}

/// Whether the product reads so little of a matrix that is there from the start
/// that every point can do it.
static bool isNarrow(ProductOp product, RowPart part, const HeadRow &row) {
  Value matrix = product.getB();
  auto copy = matrix.getDefiningOp<CastOp>();
  bool isParameter = copy ? copy.isParameterCopy() : isa<BlockArgument>(matrix);
  int64_t columns = part == RowPart::Elements ? row.width : 1;
  return isParameter && product.getTransposeB() && !product.getTransposeA() &&
         hasRows(product.getA()) &&
         (part == RowPart::Elements || part == RowPart::Heads) &&
         columns * tensorOf(matrix).getDimSize(1) <= kMostMatrixElements;
}

Value RowSources::resolve(Value value) const {
  while (true) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      Operation *parent = argument.getOwner()->getParentOp();
      if (!isa<RowwiseOp>(parent) || !inside.contains(parent))
        return value;
      value = parent->getOperand(argument.getArgNumber());
      continue;
    }
    auto region = value.getDefiningOp<RowwiseOp>();
    if (!region || !inside.contains(region))
      return value;
    value = region.getBody().front().getTerminator()->getOperand(
        cast<OpResult>(value).getResultNumber());
  }
}

Operation *RowSources::makerOf(Value value) const {
  Operation *op = value.getDefiningOp();
  if (!op)
    return nullptr;
  bool isInside = isa<hybrid::ReshapeOp>(op) || inside.contains(op) ||
                  inside.contains(op->getParentOp());
  return isInside ? op : nullptr;
}

bool RowSources::trace(Value value, RowPart part, const HeadRow &row,
                       Visit visit) const {
  value = resolve(value);
  Operation *op = makerOf(value);
  if (!op) {
    visit({value, part});
    return canLoad(value, part, row);
  }
  if (auto product = dyn_cast<ProductOp>(op)) {
    visit({product.getB(), part});
    return isNarrow(product, part, row) &&
           trace(product.getA(), RowPart::All, row, visit);
  }
  std::optional<Parts> parts = operandParts(op, part, row);
  if (!parts)
    return false;
  for (auto [operand, of] : llvm::zip_equal(op->getOperands(), *parts))
    if (!isa<SegmentsType>(operand.getType()) &&
        !trace(operand, of, row, visit))
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Making them
//===----------------------------------------------------------------------===//

int64_t RowPartEmitter::widthOf(Value value, RowPart part) const {
  switch (part) {
  case RowPart::Elements:
  case RowPart::Columns:
    return row.width;
  case RowPart::All:
    return rowElements(value);
  case RowPart::Heads:
  case RowPart::Single:
    return 1;
  }
  llvm_unreachable("a part is one of these");
}

/// Where the part begins among the elements of a row.
Value RowPartEmitter::firstOf(RowPart part) {
  switch (part) {
  case RowPart::Elements:
    return k.add(k.mul(at.head, k.idx(row.dim)), at.column);
  case RowPart::Columns:
    return at.column;
  case RowPart::Heads:
    return at.head;
  case RowPart::Single:
  case RowPart::All:
    return k.idx(0);
  }
  llvm_unreachable("a part is one of these");
}

Value RowPartEmitter::load(Value value, RowPart part) {
  Value &known = loaded[{value, static_cast<int>(part)}];
  if (known)
    return known;
  SmallVector<Value> indices;
  if (hasRows(value)) {
    indices.push_back(token);
    rowLoads.push_back({value, static_cast<int>(part)});
  }
  if (rowSizes(value).size() == 1)
    indices.push_back(firstOf(part));
  else if (part == RowPart::Elements)
    indices.append({at.head, at.column});
  else
    indices.append({at.head, k.idx(0)});
  int64_t width = widthOf(value, part);
  Value tile = k.load(at.viewOf(value), indices,
                      {static_cast<int64_t>(indices.size()) - 1}, {width});
  return known = k.reshape(tile, {1, 1, width});
}

/// Rows of the matrix that give the part.
Value RowPartEmitter::loadMatrix(Value matrix, RowPart part) {
  Value &known = loaded[{matrix, static_cast<int>(part)}];
  if (!known)
    known = k.load(at.viewOf(matrix), {firstOf(part), k.idx(0)}, {0, 1},
                   {widthOf(matrix, part), tensorOf(matrix).getDimSize(1)});
  return known;
}

void RowPartEmitter::loadLeaves(Value value, RowPart part, bool withRows) {
  auto visit = [&](RowSources::Leaf leaf) {
    if (hasRows(leaf.value) != withRows)
      return;
    if (isMatrix(leaf.value))
      loadMatrix(leaf.value, leaf.part);
    else
      load(leaf.value, leaf.part);
  };
  sources.trace(value, part, row, visit);
}

/// Parameters of two dims are read by products alone.
bool RowPartEmitter::isMatrix(Value value) const {
  return !hasRows(value) &&
         llvm::any_of(value.getUsers(), [&](Operation *user) {
           auto product = dyn_cast<ProductOp>(user);
           return product && product.getB() == value &&
                  sources.makerOf(product);
         });
}

void RowPartEmitter::startRow(Value value, RowPart part, Value newToken,
                              Value newLimit) {
  token = newToken;
  limit = newLimit;
  for (const auto &key : rowLoads)
    loaded.erase(key);
  rowLoads.clear();
  loadLeaves(value, part, /*withRows=*/true);
}

Value RowPartEmitter::multiply(ProductOp product, RowPart part) {
  Value matrix = loadMatrix(product.getB(), part);
  Value x = emit(product.getA(), RowPart::All);
  ArrayRef<int64_t> shape = cast<RankedTensorType>(matrix.getType()).getShape();
  x = k.reshape(x, {1, shape[1]});
  Value sums = k.sum(k.mul(matrix, k.broadcast(x, shape)), 1);
  return k.rounded(k.reshape(sums, {1, 1, shape[0]}),
                   tensorOf(product.getResult()).getElementType());
}

Value RowPartEmitter::emit(Value value, RowPart part) {
  value = sources.resolve(value);
  Operation *op = sources.makerOf(value);
  if (!op)
    return load(value, part);
  if (auto product = dyn_cast<ProductOp>(op))
    return multiply(product, part);
  if (auto reshape = dyn_cast<hybrid::ReshapeOp>(op))
    return emit(reshape.getX(), part);
  if (auto fill = dyn_cast<FillOp>(op))
    return k.full(fill.getValue().convertToDouble(),
                  {1, 1, widthOf(value, part)});
  Parts parts = *operandParts(op, part, row);
  RowBlock one;
  RowwiseEmitter e(k, one, token, limit);
  for (auto [operand, of] : llvm::zip_equal(op->getOperands(), parts)) {
    if (isa<SegmentsType>(operand.getType()))
      e.setSegments(operand, at.table, at.tokenSegment);
    else
      e.setTile(operand, emit(operand, of));
  }
  return lookupRowwiseEmission(op)(e, op);
}
