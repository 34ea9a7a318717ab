//===- Views.cpp - values that are parts of other values -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Views.h"

#include "hybrid/Hybrid/HybridOps.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace hybrid;

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

static Value throughReshapes(Value value) {
  while (auto reshape = value.getDefiningOp<ReshapeOp>())
    value = reshape.getX();
  return value;
}

static Value copyBefore(Operation *op, Value value) {
  OpBuilder builder(op);
  auto copy = RowwiseOp::create(builder, op->getLoc(), value.getType(), value);
  Block *body =
      builder.createBlock(&copy.getBody(), {}, value.getType(), op->getLoc());
  YieldOp::create(builder, op->getLoc(), body->getArguments());
  return copy->getResult(0);
}

/// Whether `result` is the memory that argument `arg` names: a state or a
/// gradient that the entry hands through unchanged.
static bool isSameBuffer(func::FuncOp function, unsigned result,
                         BlockArgument arg) {
  auto same = [&](StringRef name) {
    Attribute ofResult = function.getResultAttr(result, name);
    return ofResult == function.getArgAttr(arg.getArgNumber(), name);
  };
  return same("hybrid.role") && same("hybrid.path");
}

unsigned hybrid::insertCopies(func::FuncOp function) {
  unsigned copies = 0;
  DenseSet<Value> placed;
  auto place = [&](OpOperand &operand, bool argumentFits) {
    Value root = throughReshapes(operand.get());
    bool movable = argumentFits ||
                   !(isa<BlockArgument>(root) || root.getDefiningOp<SliceOp>());
    if (movable && placed.insert(root).second)
      return;
    operand.set(copyBefore(operand.getOwner(), operand.get()));
    placed.insert(operand.get());
    ++copies;
  };
  for (Operation &op : function.getBody().front()) {
    if (isa<ConcatOp>(op))
      for (OpOperand &operand : op.getOpOperands())
        place(operand, /*argumentFits=*/false);
    if (isa<func::ReturnOp>(op))
      for (OpOperand &operand : op.getOpOperands()) {
        auto argument = dyn_cast<BlockArgument>(throughReshapes(operand.get()));
        place(operand,
              argument &&
                  isSameBuffer(function, operand.getOperandNumber(), argument));
      }
  }
  return copies;
}

/// The value from outside `op` whose memory `value` is, unless `op` makes it.
static Value originOutside(Operation *op, Value value) {
  while (Operation *def = value.getDefiningOp()) {
    if (!op->isAncestor(def))
      return value;
    auto reshape = dyn_cast<ReshapeOp>(def);
    if (!reshape)
      return {};
    value = reshape.getX();
  }
  return value;
}

static bool isInput(func::FuncOp function, Value value) {
  auto argument = dyn_cast<BlockArgument>(throughReshapes(value));
  if (!argument || argument.getOwner() != &function.getBody().front())
    return false;
  auto role = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                    "hybrid.role");
  return role && role == "input";
}

/// A copy of `value`, whose programs have at most three dims.
static RowwiseOp copyFlat(Operation *op, Value value, Value &copied) {
  OpBuilder builder(op);
  auto type = cast<RankedTensorType>(value.getType());
  ArrayRef<int64_t> sizes = type.getShape();
  Value flat = value;
  if (sizes.size() > 3) {
    int64_t middle = 1;
    for (int64_t size : sizes.drop_front().drop_back())
      middle *= size;
    flat = ReshapeOp::create(builder, op->getLoc(),
                             type.clone({sizes.front(), middle, sizes.back()}),
                             value);
  }
  Value copy = copyBefore(op, flat);
  copied = flat == value ? copy
                         : ReshapeOp::create(builder, op->getLoc(), type, copy);
  return copy.getDefiningOp<RowwiseOp>();
}

FailureOr<SmallVector<RowwiseOp>>
hybrid::copyOverwrittenInputs(func::FuncOp function) {
  SmallVector<RowwiseOp> copies;
  for (Operation &op : function.getBody().front()) {
    llvm::SetVector<Value> overwritten;
    op.walk([&](DispatchOp dispatch) {
      for (OpResult result : dispatch->getResults()) {
        auto tied = dispatch.getTiedInput(result.getResultNumber());
        if (!tied)
          continue;
        Value origin = originOutside(&op, dispatch.getInputs()[*tied]);
        if (origin && isInput(function, origin))
          overwritten.insert(origin);
      }
    });
    for (Value value : overwritten) {
      auto type = cast<RankedTensorType>(value.getType());
      if (type.getNumDynamicDims() > 1)
        return op.emitOpError("overwrites an input of type ")
               << type << ", of which there is no copy because two of its "
               << "sizes depend on the call; make it a state";
      Value copied;
      copies.push_back(copyFlat(&op, value, copied));
      value.replaceUsesWithIf(copied, [&](OpOperand &use) {
        return op.isAncestor(use.getOwner());
      });
    }
  }
  return copies;
}

//===----------------------------------------------------------------------===//
// Strides
//===----------------------------------------------------------------------===//

namespace {

/// Values that share memory, and which of them are parts of wider rows.
class Aliases {
public:
  explicit Aliases(func::FuncOp function) {
    function.walk([&](Operation *op) { visit(op); });
  }

  bool isStrided(Value value) {
    auto it = classes.findLeader(value.getAsOpaquePointer());
    return it != classes.member_end() && strided.contains(*it);
  }

private:
  void join(Value a, Value b) {
    const void *leaderA =
        classes.getOrInsertLeaderValue(a.getAsOpaquePointer());
    const void *leaderB =
        classes.getOrInsertLeaderValue(b.getAsOpaquePointer());
    bool either = strided.contains(leaderA) || strided.contains(leaderB);
    const void *leader = *classes.unionSets(leaderA, leaderB);
    if (either)
      strided.insert(leader);
  }
  void mark(Value value) {
    strided.insert(classes.getOrInsertLeaderValue(value.getAsOpaquePointer()));
  }

  void visit(Operation *op) {
    if (auto reshape = dyn_cast<ReshapeOp>(op))
      join(reshape.getX(), reshape.getResult());
    else if (auto slice = dyn_cast<SliceOp>(op))
      mark(slice.getResult());
    else if (auto concat = dyn_cast<ConcatOp>(op))
      llvm::for_each(concat.getParts(), [&](Value part) { mark(part); });
    else if (auto pieces = dyn_cast<PiecesOp>(op))
      for (BlockArgument argument : pieces.getBlock().getArguments())
        join(pieces.getOperandOf(argument), argument);
    else if (isa<YieldOp>(op) &&
             isa<AlternativesOp, PiecesOp>(op->getParentOp()))
      for (auto [value, result] :
           llvm::zip_equal(op->getOperands(), op->getParentOp()->getResults()))
        join(value, result);
    else if (auto dispatch = dyn_cast<DispatchOp>(op))
      for (OpResult result : dispatch->getResults())
        if (auto input = dispatch.getTiedInput(result.getResultNumber()))
          join(dispatch.getInputs()[*input], result);
  }

  llvm::EquivalenceClasses<const void *> classes;
  llvm::DenseSet<const void *> strided;
};

} // namespace

void hybrid::relaxStrides(func::FuncOp function, ProgramTable &programs) {
  Aliases aliases(function);
  function.walk([&](DispatchOp dispatch) {
    SmallVector<bool> strided;
    for (Value input : dispatch.getInputs()) {
      if (isa<SegmentsType>(input.getType()))
        strided.append({false, false});
      else
        strided.push_back(aliases.isStrided(input));
    }
    for (OpResult result : dispatch->getResults())
      if (!dispatch.getTiedInput(result.getResultNumber()))
        strided.push_back(aliases.isStrided(result));
    if (!llvm::is_contained(strided, true))
      return;
    auto program = SymbolTable::lookupNearestSymbolFrom<tile::ProgramOp>(
        dispatch, dispatch.getProgramAttr());
    dispatch.setProgram(programs.relaxed(program, strided).getSymName());
  });
}
