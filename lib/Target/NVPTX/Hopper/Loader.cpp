//===- Loader.cpp - the role that issues copies ---------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Roles.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::hopper;

//===----------------------------------------------------------------------===//
// What both roles do
//===----------------------------------------------------------------------===//

Value RoleBuilder::countOf(Value lower, Value step, Value at) {
  Value distance = b.createOrFold<arith::SubIOp>(at, lower);
  Value count = b.createOrFold<arith::DivUIOp>(distance, step);
  return passed ? b.createOrFold<arith::AddIOp>(passed, count) : count;
}

Value RoleBuilder::countIterations(scf::ForOp loop, const IRMapping &mapping) {
  Value step = mapping.lookup(loop.getStep());
  Value distance =
      arith::SubIOp::create(b, mapping.lookup(loop.getUpperBound()),
                            mapping.lookup(loop.getLowerBound()));
  distance = arith::MaxSIOp::create(b, distance, index(0));
  Value round = arith::SubIOp::create(b, step, index(1));
  Value iterations = arith::DivUIOp::create(
      b, arith::AddIOp::create(b, distance, round), step);
  passedAfter = arith::AddIOp::create(b, passed, iterations);
  return iterations;
}

Place RoleBuilder::placeOf(const Ring &ring, Value count) {
  int64_t copies = ring.buffer.getType().getCopies();
  if (!ring.loop)
    return {i32(0), i32(0)};
  Value number = toI32(count), size = i32(copies);
  Value copy = b.createOrFold<arith::RemUIOp>(number, size);
  Value round = b.createOrFold<arith::DivUIOp>(number, size);
  return {copy, b.createOrFold<arith::AndIOp>(round, i32(1))};
}

bool RoleBuilder::cloneScalar(Operation *op, IRMapping &mapping) {
  for (Value operand : op->getOperands())
    if (!mapping.contains(operand))
      return false;
  if (auto id = dyn_cast<tile::IdOp>(op)) {
    Value made = IdOp::create(b, id.getDim(), task);
    mapping.map(id.getResult(), made);
    return true;
  }
  Operation *made = b.clone(*op, mapping);
  made->removeDiscardableAttr(tile::TileDialect::kNameAttr);
  return true;
}

//===----------------------------------------------------------------------===//
// Loader
//===----------------------------------------------------------------------===//

bool Loader::hasLoads(Operation *op) const {
  return llvm::any_of(record.getLoads(),
                      [&](tile::LoadOp load) { return op->isAncestor(load); });
}

/// When the copy is empty: announce the bytes, then fetch them.
LogicalResult Loader::emitLoad(tile::LoadOp load, IRMapping &mapping,
                               Value count) {
  const Ring &ring = ringOf(load);
  Place place = placeOf(ring, count);
  if (ring.empty) {
    // Of the first round, the phase before the first one: it has ended.
    Value before = arith::XOrIOp::create(b, place.parity, i32(1));
    WaitOp::create(b, ring.empty, place.copy, before);
  }
  ExpectOp::create(b, ring.full, place.copy,
                   ring.buffer.getType().getCopyBytes());
  SmallVector<Value> indices;
  for (Value operand : load.getIndices()) {
    if (!mapping.contains(operand))
      return load.emitError(
          "is placed by values that the role that loads does not compute; its "
          "indices may depend on scalars alone");
    indices.push_back(mapping.lookup(operand));
  }
  TensorLoadOp::create(b, ring.map, indices, load.getDims(), ring.buffer,
                       place.copy, ring.full, place.copy);
  return success();
}

LogicalResult Loader::emit(Block &block, IRMapping &mapping, Value count) {
  for (Operation &op : block) {
    if (record.isLoad(&op)) {
      if (failed(emitLoad(cast<tile::LoadOp>(op), mapping, count)))
        return failure();
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      if (!hasLoads(loop))
        continue;
      auto made = scf::ForOp::create(b, mapping.lookup(loop.getLowerBound()),
                                     mapping.lookup(loop.getUpperBound()),
                                     mapping.lookup(loop.getStep()));
      b.setInsertionPointToStart(made.getBody());
      mapping.map(loop.getInductionVar(), made.getInductionVar());
      Value number =
          countOf(made.getLowerBound(), made.getStep(), made.getInductionVar());
      if (failed(emit(*loop.getBody(), mapping, number)))
        return failure();
      b.setInsertionPointAfter(made);
      if (task)
        countIterations(loop, mapping);
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      if (!hasLoads(branch))
        continue;
      if (!mapping.contains(branch.getCondition()) || branch.elseBlock())
        return branch.emitError(
            "around loads must depend on scalars alone and have no else");
      auto made = scf::IfOp::create(b, mapping.lookup(branch.getCondition()),
                                    /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(made.thenBlock());
      if (failed(emit(*branch.thenBlock(), mapping, count)))
        return failure();
    } else if (op.getNumRegions() == 0 && op.getNumResults() > 0 &&
               llvm::none_of(op.getResults(), isTile)) {
      cloneScalar(&op, mapping);
    }
  }
  return success();
}
