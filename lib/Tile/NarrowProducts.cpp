//===- NarrowProducts.cpp - products in the type of the operands ----------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Tile/Passes.h"
#include "hybrid/Tile/TileOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

namespace hybrid {
#define GEN_PASS_DEF_HYBRIDNARROWPRODUCTS
#include "hybrid/Tile/Passes.h.inc"
} // namespace hybrid

using namespace mlir;
using namespace hybrid;

/// What `value` is the widened form of, or null.
static Value narrowSource(Value value) {
  auto widened = value.getDefiningOp<arith::ExtFOp>();
  return widened ? widened.getIn() : Value();
}

/// A change of shape of a widened tile becomes the widening of a changed one.
static void moveBehind(Operation *shape) {
  Value narrow = narrowSource(shape->getOperand(0));
  if (!narrow)
    return;
  OpBuilder builder(shape);
  auto type = cast<RankedTensorType>(shape->getResult(0).getType());
  auto tile = cast<RankedTensorType>(narrow.getType());
  Operation *changed = builder.clone(*shape);
  changed->setOperand(0, narrow);
  changed->getResult(0).setType(type.clone(tile.getElementType()));
  shape->replaceAllUsesWith(ValueRange{arith::ExtFOp::create(
      builder, shape->getLoc(), type, changed->getResult(0))});
  shape->erase();
}

/// The 16-bit type of the program's views, or null where there is none or they
/// have two.
static Type computeType(tile::ProgramOp program) {
  Type found;
  for (Value view : program.getViews()) {
    Type element = cast<tile::ViewType>(view.getType()).getElementType();
    if (!element.isBF16() && !element.isF16())
      continue;
    if (found && found != element)
      return {};
    found = element;
  }
  return found;
}

/// Both operands in the type in which one of them was loaded, or else in
/// `program`, which may be null. Rounds what is not in that type.
static bool narrowOperands(tile::DotOp dot, Type program) {
  auto narrowOf = [](Value operand) {
    return getElementTypeOrSelf(operand).isF32() ? narrowSource(operand)
                                                 : operand;
  };
  Value a = narrowOf(dot.getA()), b = narrowOf(dot.getB());
  bool isDone = a == dot.getA() && b == dot.getB();
  if (isDone || (!a && !b && !program))
    return false;
  // Two types meet in f32.
  if (a && b && getElementTypeOrSelf(a) != getElementTypeOrSelf(b))
    return false;
  Type element = a   ? getElementTypeOrSelf(a)
                 : b ? getElementTypeOrSelf(b)
                     : program;
  OpBuilder builder(dot);
  auto rounded = [&](Value computed) -> Value {
    auto type = cast<RankedTensorType>(computed.getType());
    return arith::TruncFOp::create(builder, dot.getLoc(), type.clone(element),
                                   computed);
  };
  Value left = a ? a : rounded(dot.getA());
  Value right = b ? b : rounded(dot.getB());
  dot.getAMutable().assign(left);
  dot.getBMutable().assign(right);
  return true;
}

namespace {
struct NarrowProducts
    : public hybrid::impl::HybridNarrowProductsBase<NarrowProducts> {
  using HybridNarrowProductsBase::HybridNarrowProductsBase;

  void runOnOperation() override {
    // Operands come before their users, so that chains move in one walk.
    getOperation()->walk([](Operation *op) {
      if (isa<tile::ReshapeOp, tile::TransposeOp, tile::SliceOp,
              tile::BroadcastOp>(op))
        moveBehind(op);
    });
    Type element = computeType(getOperation());
    getOperation()->walk([&](tile::DotOp dot) {
      if (narrowOperands(dot, element))
        ++numProducts;
    });
  }
};
} // namespace
