//===- Overlap.cpp - launches that begin early ----------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A decoding step is a chain of launches, each shorter than what lies between
// two of them. A program that waits for its predecessor by itself, where it
// first needs it, can be started before that one has ended: blocks are placed,
// addresses computed and weights read meanwhile. What no launch of the list
// writes need not be waited for, nor a state that none in front has written:
// what a launch overwrites of it is its own affair.
//
//===----------------------------------------------------------------------===//

#include "Overlap.h"

#include "Scheduler.h"
#include "hybrid/Tile/TileDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IntegerSet.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace hybrid;

/// The value whose memory `value` is a part of.
static Value rootOf(Value value) {
  while (Operation *def = value.getDefiningOp()) {
    if (auto reshape = dyn_cast<ReshapeOp>(def))
      value = reshape.getX();
    else if (auto slice = dyn_cast<SliceOp>(def))
      value = slice.getX();
    else if (auto cast = dyn_cast<CastOp>(def); cast && cast.isParameterCopy())
      value = cast.getX();
    else
      break;
  }
  return value;
}

/// Whether `value` is what the entry is given, and no launch in front has
/// written it: the parameters and their copies, the tokens and where their
/// sequences lie, which none writes, and states as they come, for a launch that
/// updates one gives another value.
static bool isConstantOf(func::FuncOp function, Value value) {
  auto argument = dyn_cast<BlockArgument>(rootOf(value));
  if (!argument || argument.getOwner() != &function.getBody().front())
    return false;
  auto role = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                    "hybrid.role");
  return role && llvm::is_contained({"param", "ids", "segments", "state"},
                                    role.getValue());
}

/// Per view of the dispatch's program: whether it is constant.
static llvm::BitVector constantViews(func::FuncOp function,
                                     DispatchOp dispatch) {
  llvm::BitVector constant;
  for (Value input : dispatch.getInputs()) {
    bool isConstant = isConstantOf(function, input);
    constant.push_back(isConstant);
    if (isa<SegmentsType>(input.getType()))
      constant.push_back(isConstant);
  }
  for (OpResult result : dispatch->getResults())
    if (!dispatch.getTiedInput(result.getResultNumber()))
      constant.push_back(false);
  return constant;
}

/// Whether the launch runs in calls of few rows: it is not what an algorithm
/// for these is chosen before.
static bool isOfStep(DispatchOp dispatch) {
  if (!isDecoded(dispatch))
    return false;
  for (Region *region = dispatch->getParentRegion();
       auto choice = dyn_cast<AlternativesOp>(region->getParentOp());
       region = choice->getParentRegion())
    for (unsigned n = 0; n < region->getRegionNumber(); ++n) {
      IntegerSet guard = cast<IntegerSetAttr>(choice.getGuards()[n]).getValue();
      for (CallSymbol rows :
           {CallSymbol::tokens, CallSymbol::segments, CallSymbol::longest})
        if (guard.getConstraint(0).isFunctionOfSymbol(
                static_cast<unsigned>(rows)))
          return false;
    }
  return true;
}

unsigned hybrid::markOverlap(ModuleOp module) {
  // A program has one text for all of its launches.
  llvm::MapVector<Operation *, llvm::BitVector> constant;
  DenseSet<Operation *> steps;
  SymbolTableCollection symbols;
  module.walk([&](DispatchOp dispatch) {
    auto function = dispatch->getParentOfType<func::FuncOp>();
    auto program = symbols.lookupNearestSymbolFrom<tile::ProgramOp>(
        dispatch, dispatch.getProgramAttr());
    if (isOfStep(dispatch))
      steps.insert(program);
    llvm::BitVector views = constantViews(function, dispatch);
    auto [known, isNew] = constant.try_emplace(program, views);
    if (!isNew)
      known->second &= views;
  });
  unsigned marked = 0;
  Builder builder(module.getContext());
  for (auto &[program, views] : constant) {
    if (!steps.contains(program))
      continue;
    program->setAttr(
        tile::TileDialect::kOverlapAttr,
        builder.getDenseI64ArrayAttr(SmallVector<int64_t>(views.set_bits())));
    ++marked;
  }
  return marked;
}
