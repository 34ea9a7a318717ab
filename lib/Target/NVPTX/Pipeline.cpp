//===- Pipeline.cpp - loops whose operands are copied ahead -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With S stages, iteration i waits for its own copies, passes a barrier, and
// starts those of iteration i + S - 1 into the stage that iteration i - 1 has
// read; the barrier says that it has. So there is one barrier per iteration,
// and S - 1 iterations to hide the latency of a copy.
//
// A kernel that begins early streams what its loops read and nothing writes, be
// it an operand of a product or not, and the first copies begin before it waits
// for the kernel in front. Where every thread reads the pieces that it copied,
// there is no barrier, and S iterations hide the latency.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::nvptx;

static Type elementOf(Value tile) {
  return cast<RankedTensorType>(tile.getType()).getElementType();
}

/// Whether `value` can be computed for another iteration: from the induction
/// variable and from what is outside the loop, by arithmetic alone.
static bool isMovable(Value value, scf::ForOp loop) {
  if (value == loop.getInductionVar())
    return true;
  Operation *op = value.getDefiningOp();
  Region *body = &loop.getRegion();
  if (!op)
    return !body->isAncestor(value.getParentRegion());
  if (!body->isAncestor(op->getParentRegion()))
    return true;
  return isa<arith::ArithDialect>(op->getDialect()) &&
         op->getBlock() == loop.getBody() &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return isMovable(operand, loop); });
}

/// Maps `value`, and what it is computed from, into `scalars`.
static Value move(OpBuilder &b, Value value, scf::ForOp loop,
                  IRMapping &scalars, const IRMapping &outside) {
  if (Value known = scalars.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op || !loop.getRegion().isAncestor(op->getParentRegion())) {
    Value result = outside.lookupOrDefault(value);
    scalars.map(value, result);
    return result;
  }
  for (Value operand : op->getOperands())
    move(b, operand, loop, scalars, outside);
  b.clone(*op, scalars);
  return scalars.lookup(value);
}

/// Most stages of a stream.
static constexpr int64_t kMostStages = 8;

/// Whether a load is worth a copy ahead although no product reads it: a large
/// tile of what nothing writes, in a kernel that begins early.
bool KernelLowering::isStreamed(tile::LoadOp load) {
  constexpr int64_t kLargeBytes = 8 << 10;
  auto tile = cast<RankedTensorType>(load.getTile().getType());
  return isOverlapping && views[load.getView()].isConstant &&
         tile.getNumElements() * storedBytes(tile.getElementType()) >=
             kLargeBytes;
}

/// Whether the tile is rows of whole pieces of 16 bytes that are dealt to the
/// threads without a rest.
static bool isWholePieces(tile::LoadOp load, int64_t warps) {
  auto type = cast<RankedTensorType>(load.getTile().getType());
  int64_t vector = 16 / storedBytes(type.getElementType());
  if (load.getDims().back() + 1 != int64_t(load.getIndices().size()))
    return false;
  Layout pieces = Layout::blocked(type.getShape(), warps, vector);
  for (int64_t d = 0; d < type.getRank(); ++d)
    if (pieces.reachesPast(d))
      return false;
  return pieces.run(type.getRank() - 1) % vector == 0 && !pieces.hasCopies();
}

/// Whether a reader of the tile, or of its part from `start` along a dim, has
/// for a thread what the thread copies.
static bool readsPieces(const Layout &pieces, const Layout &reader,
                        unsigned dim = 0, int64_t start = 0) {
  if (!reader.sameThreads(pieces))
    return false;
  for (int64_t reg = 0; reg < reader.numRegisters(); ++reg) {
    Coordinates offset = reader.registerOffset(reg);
    offset[dim] += start;
    if (!pieces.registerAt(offset))
      return false;
  }
  return true;
}

/// Whether the tile's readers have the layout in which it is copied.
bool KernelLowering::readsOwnPieces(tile::LoadOp load) {
  auto type = cast<RankedTensorType>(load.getTile().getType());
  Layout pieces = Layout::blocked(type.getShape(), plan.numWarps(),
                                  16 / storedBytes(type.getElementType()));
  return !pieces.hasCopies() &&
         llvm::all_of(load.getTile().getUsers(), [&](Operation *user) {
           if (auto slice = dyn_cast<tile::SliceOp>(user))
             return readsPieces(pieces, plan.layoutOf(slice.getResult()),
                                slice.getDim(), slice.getOffset());
           return isElementwise(user) &&
                  readsPieces(pieces, plan.layoutOf(user->getResult(0)));
         });
}

bool KernelLowering::mayCopyAhead(tile::LoadOp load, scf::ForOp loop) {
  auto movable = [&](Value value) { return isMovable(value, loop); };
  return load->getBlock() == loop.getBody() &&
         !views[load.getView()].isWritten &&
         storedBytes(elementOf(load.getTile())) <= 4 &&
         llvm::all_of(load.getIndices(), movable) &&
         llvm::all_of(load.getLimits(), movable);
}

/// Operands of products, large tiles of a kernel that begins early, and in a
/// loop without products all that it loads, or else it would wait in any case:
/// while a block adds up its rows it loads nothing. The programs of decoding
/// steps order their other loads themselves.
SmallVector<tile::LoadOp> KernelLowering::loadsToCopyAhead(scf::ForOp loop) {
  SmallVector<tile::LoadOp> wanted, every;
  bool isEvery = !plan.hasProducts() && !isOverlapping;
  loop.getBody()->walk([&](tile::LoadOp load) {
    bool isPossible = mayCopyAhead(load, loop);
    if (isPossible && (plan.isOperand(load.getTile()) || isStreamed(load)))
      wanted.push_back(load);
    every.push_back(load);
    isEvery = isEvery && isPossible && isWholePieces(load, plan.numWarps());
  });
  return isEvery ? every : wanted;
}

KernelLowering::Pipeline KernelLowering::planPipeline(scf::ForOp loop) {
  Pipeline pipeline;
  if (budget.stages < 2)
    return pipeline;
  pipeline.loads = loadsToCopyAhead(loop);
  int64_t total = 0, numStreamed = 0;
  for (tile::LoadOp load : pipeline.loads) {
    numStreamed += isStreamed(load);
    total += stagedBytes(load.getTile());
  }
  // More stages only while two blocks still share a multiprocessor: they hide
  // each other's waits as well.
  pipeline.isStream =
      !pipeline.loads.empty() && numStreamed == int64_t(pipeline.loads.size());
  if (pipeline.isStream)
    // It is the memory's rate that counts: as much as leaves room beside.
    pipeline.stages =
        std::clamp<int64_t>(budget.sharedBytes * 5 / 8 / total, 1,
                            budget.stages >= 3 ? kMostStages : budget.stages);
  else if (budget.stages >= 3 && 3 * total <= budget.sharedBytes * 3 / 8)
    pipeline.stages = 3;
  else if (2 * total <= budget.sharedBytes / 2)
    pipeline.stages = 2;
  if (pipeline.loads.empty() || pipeline.stages == 1)
    return {};
  pipeline.isOwn =
      pipeline.isStream && llvm::all_of(pipeline.loads, [&](tile::LoadOp load) {
        return readsOwnPieces(load);
      });
  for (tile::LoadOp load : pipeline.loads) {
    // One stage as it would be alone, then the others behind it.
    SharedTile one = allocateFor(load.getTile(), shapeOf(load.getTile()));
    int64_t bytes = llvm::alignTo(stagedBytes(load.getTile()), 128);
    auto [buffer, pointer] = shared.allocate(bytes * pipeline.stages);
    one.buffer = buffer;
    one.pointer = pointer;
    pipeline.buffers.push_back(one);
    pipeline.bytes.push_back(bytes);
  }
  return pipeline;
}

/// The copies of the iteration at `index`, if there is one, as one group.
void KernelLowering::issueCopies(Pipeline &pipeline, scf::ForOp loop,
                                 Value index, Value upper, Value slot) {
  Value exists =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, index, upper);
  auto branch = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(branch.thenBlock()->getTerminator());
    IRMapping scalars;
    scalars.map(loop.getInductionVar(), index);
    for (auto [load, buffer, bytes] :
         llvm::zip(pipeline.loads, pipeline.buffers, pipeline.bytes)) {
      for (ValueRange values : {load.getIndices(), load.getLimits()})
        for (Value value : values)
          move(b, value, loop, scalars, mapping);
      SharedTile to = buffer;
      to.pointer = b.address(buffer.pointer, b.mul(slot, b.i32(bytes)));
      shared.keepAlive(buffer.buffer);
      copyToShared(load, to, scalars);
    }
  }
  b.commitCopies();
}

void KernelLowering::issueFirstCopies(Pipeline &pipeline, scf::ForOp loop) {
  Value index = scalar(loop.getLowerBound()),
        upper = scalar(loop.getUpperBound()), step = scalar(loop.getStep());
  for (int64_t stage = 0; stage < pipeline.ahead(); ++stage) {
    issueCopies(pipeline, loop, index, upper, b.i32(stage));
    index = b.createOrFold<arith::AddIOp>(index, step);
  }
}

/// What `value` is made of by arithmetic behind `op`, operands first; false
/// where there is more to it.
static bool gatherBehind(Value value, Operation *op,
                         SmallVectorImpl<Operation *> &made) {
  Operation *def = value.getDefiningOp();
  if (!def || def->getBlock() != op->getBlock() || def->isBeforeInBlock(op) ||
      llvm::is_contained(made, def))
    return true;
  if (!isa<arith::ArithDialect>(def->getDialect()) || isTile(value))
    return false;
  for (Value operand : def->getOperands())
    if (!gatherBehind(operand, op, made))
      return false;
  made.push_back(def);
  return true;
}

/// Streams in loops behind `op` begin in front of it, where all that they need
/// is known.
void KernelLowering::beginStreams(Operation *op) {
  for (Operation *at = op; at; at = at->getNextNode()) {
    auto loop = dyn_cast<scf::ForOp>(at);
    if (!loop || llvm::none_of(loop.getBody()->getOps<tile::LoadOp>(),
                               [&](auto load) { return isStreamed(load); }))
      continue;
    SmallVector<Operation *> made;
    bool isKnown = llvm::all_of(
        ValueRange{loop.getLowerBound(), loop.getUpperBound(), loop.getStep()},
        [&](Value value) { return gatherBehind(value, op, made); });
    loop.getBody()->walk([&](Operation *inner) {
      if (isa<arith::ArithDialect>(inner->getDialect()) ||
          isa<tile::LoadOp>(inner))
        for (Value operand : inner->getOperands())
          if (!isTile(operand) &&
              !loop.getRegion().isAncestor(operand.getParentRegion()))
            isKnown &= gatherBehind(operand, op, made);
    });
    if (!isKnown)
      continue;
    Pipeline pipeline = planPipeline(loop);
    if (!pipeline.isStream || pipeline.stages < 2)
      continue;
    for (Operation *scalarOp : made)
      if (failed(lower(scalarOp)))
        return;
    issueFirstCopies(pipeline, loop);
    begun.try_emplace(loop, pipeline);
  }
}

/// Operands of products in the loop that are made before it are brought to
/// shared memory once.
void KernelLowering::stageInvariants(scf::ForOp loop) {
  loop.getBody()->walk([&](tile::DotOp dot) {
    for (Value operand : {dot.getA(), dot.getB()}) {
      if (auto transpose = operand.getDefiningOp<tile::TransposeOp>())
        operand = transpose.getInput();
      if (loop.getRegion().isAncestor(operand.getParentRegion()) ||
          plan.isCheap(operand))
        continue;
      staged(operand);
    }
  });
}
