//===- WholeProgram.cpp - what layouts of a program have in common -------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Warps of a block, elements beside each other, and the tiles that ask for
// something: operands, rows of one warp, columns of a state.
//
//===----------------------------------------------------------------------===//

#include "Propagate.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::nvptx;

static bool hasOneRow(tile::DotOp dot) {
  // Of an instruction; and 32 for each of eight warps.
  constexpr int64_t kStep = 32, kLeast = 256;
  auto element = dot.getA().getType().getElementType();
  int64_t depth = shapeOf(dot.getB())[1];
  return (element.isBF16() || element.isF16()) &&
         dot.getResult().getType().getElementType().isF32() &&
         !dot.getTransposeA() && dot.getTransposeB() &&
         shapeOf(dot.getA())[0] == 1 && depth % kStep == 0 && depth >= kLeast;
}

bool hybrid::nvptx::isRowProduct(tile::DotOp dot) {
  // Others could not read the matrix where it is put.
  return hasOneRow(dot) &&
         llvm::all_of(dot.getB().getUsers(), [&](Operation *user) {
           auto other = dyn_cast<tile::DotOp>(user);
           return other && hasOneRow(other) && other.getB() == dot.getB() &&
                  other.getA() != dot.getB();
         });
}

/// What a choice gives, if all of it is loaded for nothing else.
static SmallVector<Value, 2> loadsOfChoice(Value tile) {
  SmallVector<Value, 2> found;
  auto branch = tile.getDefiningOp<scf::IfOp>();
  if (!branch)
    return found;
  unsigned number = cast<OpResult>(tile).getResultNumber();
  for (Region *region : {&branch.getThenRegion(), &branch.getElseRegion()}) {
    Value given = region->front().getTerminator()->getOperand(number);
    if (!given.hasOneUse())
      return {};
    found.push_back(given);
    if (given.getDefiningOp<tile::LoadOp>())
      continue;
    SmallVector<Value, 2> inside = loadsOfChoice(given);
    if (inside.empty())
      return {};
    llvm::append_range(found, inside);
  }
  return found;
}

void LayoutPlan::addRowMatrix(Value tile) {
  auto add = [&](Value value) {
    operands.insert(value);
    rowMatrices.insert(value);
  };
  add(tile);
  llvm::for_each(loadsOfChoice(tile), add);
}

LayoutPlan::LayoutPlan(tile::ProgramOp program)
    : isEarly(program->hasAttr(tile::TileDialect::kOverlapAttr)) {
  program.walk([&](tile::DotOp dot) {
    if (isRowProduct(dot))
      return addRowMatrix(dot.getB());
    for (Value operand : {dot.getA(), dot.getB()}) {
      operands.insert(operand);
      if (auto transpose = operand.getDefiningOp<tile::TransposeOp>())
        operands.insert(transpose.getInput());
    }
  });
  findWholeRows(program);
  chooseWarps(program);
  chooseVector(program);
  if (isEarly && operands.empty())
    findColumns(program);
}

/// A step of a recurrence sums the columns of its state, of which a point has a
/// few. With a column in one warp, and the rows that are multiplied with it in
/// the lanes in which they are loaded, threads never meet. A lane has four
/// columns, 16 bytes in f32.
void LayoutPlan::findColumns(tile::ProgramOp program) {
  constexpr int64_t kLeastRows = 32, kMostColumns = 32, kColumns = 4;
  std::optional<Coordinates> state;
  bool isOne = true;
  program.walk([&](tile::ReduceOp reduce) {
    ArrayRef<int64_t> shape = shapeOf(reduce.getInput());
    if (reduce.getDim() != 0 || shape.size() != 2 || shape[1] == 1)
      return;
    isOne = isOne && (!state || ArrayRef<int64_t>(*state) == shape);
    state = Coordinates(shape);
  });
  if (!state || !isOne || (*state)[0] < kLeastRows ||
      (*state)[1] > kMostColumns || (*state)[1] % kColumns != 0)
    return;
  warps = llvm::bit_floor<uint64_t>((*state)[1] / kColumns);
  columns = Layout::columns(*state, warps, vector);
  program.walk([&](tile::ReduceOp reduce) {
    ArrayRef<int64_t> shape = shapeOf(reduce.getInput());
    if (reduce.getDim() != 1 || shape.size() != 2 || shape[0] != (*state)[0] ||
        shape[1] > kMostColumns)
      return;
    Layout one = Layout::columns(shape, /*warps=*/1, vector);
    besideColumns =
        Layout(shape, Layout::Factors(one.getRegisters()),
               Layout::Factors(one.getLanes()), {{kCopies, warps, 0}});
  });
}

/// Eight elements beside each other where a loop without products goes through
/// large tiles of 16 bits: sums along rows then pass between half as many
/// threads.
void LayoutPlan::chooseVector(tile::ProgramOp program) {
  constexpr int64_t kLarge = 4096;
  bool hasProducts = false, goesThrough = false;
  program.walk([&](Operation *op) {
    hasProducts |= isa<tile::DotOp>(op);
    auto load = dyn_cast<tile::LoadOp>(op);
    if (!load || !load->getParentOfType<scf::ForOp>())
      return;
    auto tile = cast<RankedTensorType>(load.getTile().getType());
    goesThrough |=
        tile.getElementTypeBitWidth() == 16 && tile.getNumElements() >= kLarge;
  });
  if (goesThrough && !hasProducts)
    vector = 8;
}

/// Eight warps where a tile is too large for the registers of four, in which
/// there is room for three of 64 elements per thread, or where there are many
/// products, as in an adjoint. A softmax has less to keep and wants rows of one
/// warp each; without products a region may keep many operands.
void LayoutPlan::chooseWarps(tile::ProgramOp program) {
  // A triangular inverse of 64 rows is two joins of two products.
  constexpr int64_t kManyProducts = 10, kInInverse = 4;
  int64_t products = 0, largest = 0;
  program.walk([&](Operation *op) {
    if (auto dot = dyn_cast<tile::DotOp>(op))
      products += !isRowProduct(dot);
    else if (isa<tile::UnitLowerInverseOp>(op))
      products += kInInverse;
    for (Value result : op->getResults())
      if (isTile(result) && !isCheap(result))
        largest = std::max(
            largest, cast<RankedTensorType>(result.getType()).getNumElements());
  });
  int64_t many = products == 0       ? 32 * 128
                 : wholeRows.empty() ? 64 * 128
                                     : 128 * 128;
  if (largest >= many || (wholeRows.empty() && products >= kManyProducts))
    warps = 8;
}

/// Follows a product through elementwise ops and loops to a reduction of its
/// rows or to the left side of another product.
bool LayoutPlan::needsWholeRows(Value product) {
  SmallVector<Value> todo{product};
  DenseSet<Value> seen;
  while (!todo.empty()) {
    Value value = todo.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (auto reduce = dyn_cast<tile::ReduceOp>(user)) {
        if (reduce.getDim() == 1 && reduce.getKind() == tile::ReduceKind::max)
          return true;
      } else if (isElementwise(user)) {
        todo.push_back(user->getResult(0));
      }
    }
  }
  return false;
}

void LayoutPlan::findWholeRows(tile::ProgramOp program) {
  program.walk([&](tile::DotOp dot) {
    ArrayRef<int64_t> shape = shapeOf(dot.getResult());
    if (needsWholeRows(dot.getResult()))
      wholeRows.insert({shape[0], shape[1]});
  });
  // A product whose left operand has whole rows has them too: then the operand
  // need not leave its registers.
  program.walk([&](tile::DotOp dot) {
    ArrayRef<int64_t> a = shapeOf(dot.getA()), c = shapeOf(dot.getResult());
    if (!dot.getTransposeA() && wholeRows.contains({a[0], a[1]}))
      wholeRows.insert({c[0], c[1]});
  });
}
