//===- Propagate.cpp - the layout of every tile of a program -------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Propagate.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::nvptx;

bool hybrid::nvptx::isTile(Value value) {
  return isa<RankedTensorType>(value.getType());
}

ArrayRef<int64_t> hybrid::nvptx::shapeOf(Value tile) {
  return cast<RankedTensorType>(tile.getType()).getShape();
}

bool hybrid::nvptx::isElementwise(Operation *op) {
  return op && op->getNumResults() == 1 && isTile(op->getResult(0)) &&
         op->getNumRegions() == 0 && !isa<arith::ConstantOp>(op) &&
         isa<arith::ArithDialect, math::MathDialect>(op->getDialect());
}

Accumulator LayoutPlan::accumulatorOf(ArrayRef<int64_t> shape) const {
  return Accumulator::divide(shape[0], shape[1], warps,
                             wholeRows.contains({shape[0], shape[1]}));
}

Layout LayoutPlan::accumulatorLayout(ArrayRef<int64_t> shape) const {
  return accumulatorOf(shape).layout(shape[0], shape[1], warps);
}

Layout LayoutPlan::unasked(ArrayRef<int64_t> shape) const {
  Layout blocked = Layout::blocked(shape, warps, vector);
  if (!columns)
    return blocked;
  ArrayRef<int64_t> state = columns->getShape();
  if (shape == state)
    return *columns;
  int64_t rows = state[0], elements = 1;
  for (int64_t size : shape)
    elements *= size;
  auto like = [&](const Layout &layout, ArrayRef<int64_t> part) {
    return layout.restricted(part).reshaped(shape).value_or(blocked);
  };
  if (besideColumns && shape == besideColumns->getShape())
    return *besideColumns;
  // What stands beside the rows or the columns, in any shape.
  if (elements == rows)
    return like(*columns, {rows, 1});
  if (elements == state[1])
    return like(*columns, {1, state[1]});
  if (besideColumns && elements == besideColumns->getShape()[1])
    return like(*besideColumns, {1, elements});
  return blocked;
}

bool LayoutPlan::isCheap(Value tile) {
  auto known = cheap.find(tile);
  if (known != cheap.end())
    return known->second;
  Operation *op = tile.getDefiningOp();
  bool result = false;
  if (isa_and_nonnull<tile::SplatOp, tile::IotaOp>(op))
    result = true;
  else if (auto constant = dyn_cast_or_null<arith::ConstantOp>(op))
    result = isa<SplatElementsAttr>(constant.getValue());
  else if (isa_and_nonnull<tile::BroadcastOp>(op))
    result = isCheap(op->getOperand(0));
  else if (isElementwise(op) && isa<arith::ArithDialect>(op->getDialect()) &&
           !isa<arith::DivFOp, arith::RemSIOp, arith::DivSIOp>(op))
    result = llvm::all_of(op->getOperands(), [&](Value operand) {
      return isTile(operand) && isCheap(operand);
    });
  cheap[tile] = result;
  return result;
}

//===----------------------------------------------------------------------===//
// From definitions
//===----------------------------------------------------------------------===//

LayoutPlan::Result LayoutPlan::natural(Value tile) {
  auto known = naturals.find(tile);
  if (known != naturals.end())
    return known->second;
  if (!active.insert(tile).second)
    return std::nullopt;
  Operation *op = tile.getDefiningOp();
  bool carried = !op || isa<scf::ForOp, scf::IfOp>(op);
  Result result = carried ? naturalOfCarried(tile) : naturalOfResult(op);
  active.erase(tile);
  // What a cycle cut off is asked again later.
  if (result || active.empty())
    naturals[tile] = result;
  return result;
}

LayoutPlan::Result LayoutPlan::naturalOfCarried(Value tile) {
  Operation *op = tile.getDefiningOp();
  if (auto branch = dyn_cast_or_null<scf::IfOp>(op)) {
    unsigned number = cast<OpResult>(tile).getResultNumber();
    for (Region *region : {&branch.getThenRegion(), &branch.getElseRegion()})
      if (Result found =
              natural(region->front().getTerminator()->getOperand(number)))
        return found;
    return std::nullopt;
  }
  scf::ForOp loop = dyn_cast_or_null<scf::ForOp>(op);
  unsigned number = 0;
  if (loop) {
    number = cast<OpResult>(tile).getResultNumber();
    // A loop's result has the layout of the argument that carries it.
    return natural(loop.getRegionIterArg(number));
  }
  auto argument = dyn_cast<BlockArgument>(tile);
  loop = argument ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp())
                  : scf::ForOp();
  if (!loop)
    return std::nullopt;
  number = argument.getArgNumber() - 1;
  if (Result next = natural(loop.getYieldedValues()[number]))
    return next;
  return natural(loop.getInitArgs()[number]);
}

/// Whether all that is made of the tile are tiles of its shape, and stored.
static bool isOnlyStored(Value tile) {
  return llvm::all_of(tile.getUsers(), [&](Operation *user) {
    return isa<tile::StoreOp>(user) ||
           (isElementwise(user) && isOnlyStored(user->getResult(0)));
  });
}

LayoutPlan::Result LayoutPlan::naturalOfResult(Operation *op) {
  if (auto dot = dyn_cast<tile::DotOp>(op))
    return isRowProduct(dot)
               ? Layout::blocked(shapeOf(dot.getResult()), warps, /*vector=*/1)
               : accumulatorLayout(shapeOf(dot.getResult()));
  if (auto inverse = dyn_cast<tile::UnitLowerInverseOp>(op))
    return accumulatorLayout(shapeOf(inverse.getResult()));
  if (auto prefix = dyn_cast<tile::PrefixSumOp>(op))
    return Layout::scan(shapeOf(prefix.getResult()), prefix.getDim(), warps);
  if (auto reduce = dyn_cast<tile::ReduceOp>(op)) {
    // A reduction keeps the layout of what it reduces, whatever that is; but
    // what warps meet for and only store is dealt to all threads, each of which
    // then adds up parts of its own.
    Value input = reduce.getInput();
    if (active.contains(input))
      return std::nullopt;
    Layout whole = layoutOf(input);
    bool crosses = llvm::any_of(whole.getWarps(), [&](const Factor &factor) {
      return factor.dim == int(reduce.getDim());
    });
    if (isEarly && crosses && isOnlyStored(reduce.getResult()))
      return Layout::blocked(shapeOf(reduce.getResult()), warps, 1);
    return whole.reduced(reduce.getDim());
  }
  if (auto transpose = dyn_cast<tile::TransposeOp>(op)) {
    if (Result input = natural(transpose.getInput()))
      return input->permuted(transpose.getPermutation());
    return std::nullopt;
  }
  if (auto reshape = dyn_cast<tile::ReshapeOp>(op)) {
    if (Result input = natural(reshape.getInput()))
      return input->reshaped(shapeOf(reshape.getResult()));
    return std::nullopt;
  }
  if (!isElementwise(op))
    return std::nullopt;
  // A product's layout before others: it is the one that moves most.
  Result best;
  for (Value operand : op->getOperands()) {
    if (!isTile(operand) || isCheap(operand))
      continue;
    Result found = natural(operand);
    bool isProduct = found && found->getShape().size() == 2 &&
                     *found == accumulatorLayout(shapeOf(operand));
    if (found && (!best || isProduct))
      best = found;
    if (isProduct)
      break;
  }
  return best;
}

//===----------------------------------------------------------------------===//
// From uses
//===----------------------------------------------------------------------===//

std::optional<Layout> LayoutPlan::layoutOfParts(tile::TransposeOp transpose) {
  Value whole = transpose.getResult();
  tile::SliceOp part;
  for (Operation *user : whole.getUsers()) {
    part = dyn_cast<tile::SliceOp>(user);
    if (!part || shapeOf(part.getResult())[part.getDim()] != 1)
      return std::nullopt;
  }
  if (!part)
    return std::nullopt;
  unsigned dim = part.getDim();
  return layoutOf(part.getResult())
      .stacked(dim, shapeOf(whole)[dim])
      .permuted(invertPermutationVector(transpose.getPermutation()));
}

/// As it is or in another type.
static bool isGivenByBranch(Value tile) {
  return llvm::any_of(tile.getUsers(), [](Operation *user) {
    if (isa<arith::ExtFOp, arith::TruncFOp>(user))
      return isGivenByBranch(user->getResult(0));
    return isa<scf::YieldOp>(user) && isa<scf::IfOp>(user->getParentOp());
  });
}

LayoutPlan::Result LayoutPlan::wishOf(Operation *user, Value tile) {
  if (auto transpose = dyn_cast<tile::TransposeOp>(user))
    return layoutOfParts(transpose);
  if (isElementwise(user)) {
    if (Result found = natural(user->getResult(0)))
      return found;
    return wished(user->getResult(0));
  }
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(user)) {
    if (Result found = wished(broadcast.getResult()))
      return found->restricted(shapeOf(tile));
    return std::nullopt;
  }
  if (auto reshape = dyn_cast<tile::ReshapeOp>(user)) {
    if (!isGivenByBranch(reshape.getResult()))
      return std::nullopt;
    if (Result found = wished(reshape.getResult()))
      return found->reshaped(shapeOf(tile));
    return std::nullopt;
  }
  if (auto loop = dyn_cast<scf::ForOp>(user)) {
    for (auto [init, argument] :
         llvm::zip(loop.getInitArgs(), loop.getRegionIterArgs()))
      if (init == tile)
        return natural(argument);
    return std::nullopt;
  }
  if (auto dot = dyn_cast<tile::DotOp>(user))
    if (dot.getAcc() == tile)
      return natural(dot.getResult());
  if (auto yield = dyn_cast<scf::YieldOp>(user))
    return wishOfBranch(yield, tile);
  return std::nullopt;
}

/// What a branch gives has the layout that its readers have.
LayoutPlan::Result LayoutPlan::wishOfBranch(scf::YieldOp yield, Value tile) {
  auto branch = dyn_cast<scf::IfOp>(yield->getParentOp());
  if (!branch)
    return std::nullopt;
  for (auto [given, result] :
       llvm::zip_equal(yield.getOperands(), branch.getResults()))
    if (given == tile)
      return chosen.contains(result) ? chosen.find(result)->second
                                     : wished(result);
  return std::nullopt;
}

LayoutPlan::Result LayoutPlan::wished(Value tile) {
  if (!wishing.insert(tile).second)
    return std::nullopt;
  Result result;
  for (Operation *user : tile.getUsers())
    if ((result = wishOf(user, tile)))
      break;
  wishing.erase(tile);
  return result;
}

/// What is made of a branch's result alone stays where that is.
LayoutPlan::Result LayoutPlan::ofBranch(Value tile) {
  Operation *op = tile.getDefiningOp();
  if (!isElementwise(op) || op->getNumOperands() != 1 ||
      !op->getOperand(0).getDefiningOp<scf::IfOp>())
    return std::nullopt;
  return layoutOf(op->getOperand(0));
}

/// What is loaded to be stretched lies where the first tile made of it does:
/// another place would be a second load, behind the wait of an early kernel.
LayoutPlan::Result LayoutPlan::ofStretched(Value tile) {
  if (!isEarly || !tile.getDefiningOp<tile::LoadOp>() || !tile.hasOneUse())
    return std::nullopt;
  auto broadcast = dyn_cast<tile::BroadcastOp>(*tile.user_begin());
  if (!broadcast || broadcast->use_empty())
    return std::nullopt;
  Operation *user = *broadcast->user_begin();
  if (!isElementwise(user) || !wishing.insert(tile).second)
    return std::nullopt;
  Layout whole = layoutOf(user->getResult(0));
  wishing.erase(tile);
  return whole.restricted(shapeOf(tile));
}

Layout LayoutPlan::layoutOf(Value tile) {
  // What a loop carries has one layout, as argument and as result.
  if (auto loop = tile.getDefiningOp<scf::ForOp>())
    return layoutOf(
        loop.getRegionIterArg(cast<OpResult>(tile).getResultNumber()));
  auto known = chosen.find(tile);
  if (known != chosen.end())
    return known->second;
  Result result = natural(tile);
  if (!result)
    result = wished(tile);
  if (!result)
    if (auto argument = dyn_cast<BlockArgument>(tile))
      if (auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()))
        result = wished(loop.getResult(argument.getArgNumber() - 1));
  if (!result)
    result = ofBranch(tile);
  if (!result)
    result = ofStretched(tile);
  if (!result)
    result = unasked(shapeOf(tile));
  return chosen.try_emplace(tile, *result).first->second;
}
