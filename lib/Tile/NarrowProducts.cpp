//===- NarrowProducts.cpp - products in the type of what was loaded ------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Tile/Passes.h"
#include "hybrid/Tile/TileOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

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

/// Both operands in the type in which one of them was loaded. Rounds the other.
static bool narrowOperands(tile::DotOp dot) {
  Value a = narrowSource(dot.getA()), b = narrowSource(dot.getB());
  if (!a && !b)
    return false;
  OpBuilder builder(dot);
  auto rounded = [&](Value computed, Value loaded) -> Value {
    auto type = cast<RankedTensorType>(computed.getType());
    Type element = cast<RankedTensorType>(loaded.getType()).getElementType();
    return arith::TruncFOp::create(builder, dot.getLoc(), type.clone(element),
                                   computed);
  };
  // Two types meet in f32.
  if (a && b &&
      cast<RankedTensorType>(a.getType()).getElementType() !=
          cast<RankedTensorType>(b.getType()).getElementType())
    return false;
  Value left = a ? a : rounded(dot.getA(), b);
  Value right = b ? b : rounded(dot.getB(), a);
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
    getOperation()->walk([&](tile::DotOp dot) {
      if (narrowOperands(dot))
        ++numProducts;
    });
  }
};
} // namespace
