//===- SharedAccess.cpp - barriers and copies as PTX ----------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelEmitter.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::hopper;

Value KernelEmitter::barrierAddress(Value barriers, Value index) {
  Value offset = b.mul(mapping.lookupOrDefault(index), b.i32(8));
  return b.add(b.add(sharedBase, b.i32(offsets[barriers])), offset);
}

Value KernelEmitter::copyAddress(TypedValue<BufferType> buffer, Value copy) {
  Value offset = b.mul(mapping.lookupOrDefault(copy),
                       b.i32(buffer.getType().getCopyBytes()));
  return b.add(b.add(sharedBase, b.i32(offsets[buffer])), offset);
}

/// A bulk copy per panel; coordinates run from the last dim of the view to the
/// first.
void KernelEmitter::emitTensorLoad(TensorLoadOp load) {
  BufferType type = load.getBuffer().getType();
  Value target = copyAddress(load.getBuffer(), load.getCopy());
  Value barrier = barrierAddress(load.getBarriers(), load.getBarrier());
  Values coordinates;
  for (Value at : load.getIndices())
    coordinates.push_back(arith::IndexCastOp::create(
        b, b.getI32Type(), mapping.lookupOrDefault(at)));
  size_t rank = coordinates.size();
  std::string list, constraints = "r,l,r";
  for (size_t n = 0; n < rank; ++n) {
    list += (n ? ", $" : "$") + std::to_string(3 + n);
    constraints += ",r";
  }
  std::string text = "cp.async.bulk.tensor." + std::to_string(rank) +
                     "d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[$0], [$1, {" +
                     list + "}], [$2];";
  for (int64_t panel = 0; panel < type.getPanels(); ++panel) {
    Values operands{b.add(target, b.i32(panel * type.getPanelBytes())),
                    maps[load.getMap()], barrier};
    for (size_t n = 0; n < rank; ++n) {
      Value at = coordinates[rank - 1 - n];
      operands.push_back(
          n == 0 ? b.add(at, b.i32(panel * BufferType::kPanelColumns)) : at);
    }
    b.assembly(text, constraints + ",~{memory}", operands);
  }
}

/// The threads of the role take 16-byte pieces in turn. All pieces of a row are
/// cleared, so the swizzle does not matter.
void KernelEmitter::emitClearRows(ClearRowsOp clear) {
  BufferType type = clear.getBuffer().getType();
  constexpr int64_t kPieceBytes = 16, kPieces = 8;
  Value base = copyAddress(clear.getBuffer(), clear.getCopy());
  Value first = mapping.lookupOrDefault(clear.getFirst());
  int64_t perRow = type.getPanels() * kPieces;
  Value thread = arith::SubIOp::create(
      b, b.thread(), b.i32(firstWarpgroup * kWarpgroupThreads));
  Value begin = b.add(b.mul(first, b.i32(perRow)), thread);
  auto loop = scf::ForOp::create(b, begin, b.i32(type.getRows() * perRow),
                                 b.i32(roleThreads));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value at = loop.getInductionVar();
    Value row = arith::DivUIOp::create(b, at, b.i32(perRow));
    Value piece = arith::RemUIOp::create(b, at, b.i32(perRow));
    Value panel = arith::DivUIOp::create(b, piece, b.i32(kPieces));
    Value inPanel = arith::RemUIOp::create(b, piece, b.i32(kPieces));
    Value address = b.add(b.add(base, b.mul(row, b.i32(kPieceBytes * kPieces))),
                          b.add(b.mul(panel, b.i32(type.getPanelBytes())),
                                b.mul(inPanel, b.i32(kPieceBytes))));
    b.assembly("st.shared.v4.b32 [$0], {$1, $1, $1, $1};", "r,r,~{memory}",
               {address, b.i32(0)});
  }
  b.assembly("fence.proxy.async.shared::cta;", "~{memory}", {});
}

LogicalResult KernelEmitter::emitShared(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<ExpectOp>([&](ExpectOp expect) {
        b.assembly("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], " +
                       std::to_string(expect.getBytes()) + ";",
                   "r,~{memory}",
                   barrierAddress(expect.getBarriers(), expect.getIndex()));
        return success();
      })
      .Case<ArriveOp>([&](ArriveOp arrive) {
        b.assembly("{\n\t.reg .pred first;\n\tsetp.eq.u32 first, $1, 0;\n\t"
                   "@first mbarrier.arrive.shared::cta.b64 _, [$0];\n}",
                   "r,r,~{memory}",
                   {barrierAddress(arrive.getBarriers(), arrive.getIndex()),
                    b.lane()});
        return success();
      })
      .Case<WaitOp>([&](WaitOp wait) {
        b.waitForArrivals(barrierAddress(wait.getBarriers(), wait.getIndex()),
                          mapping.lookupOrDefault(wait.getParity()));
        return success();
      })
      .Case<SyncOp>([&](SyncOp sync) {
        b.assembly("bar.sync $0, " + std::to_string(sync.getThreads()) + ";",
                   "r,~{memory}", mapping.lookupOrDefault(sync.getNumber()));
        return success();
      })
      .Case<SignalOp>([&](SignalOp signal) {
        b.assembly("bar.arrive $0, " + std::to_string(signal.getThreads()) +
                       ";",
                   "r,~{memory}", mapping.lookupOrDefault(signal.getNumber()));
        return success();
      })
      .Case<TensorLoadOp>(
          [&](auto load) { return emitTensorLoad(load), success(); })
      .Case<ClearRowsOp>(
          [&](auto clear) { return emitClearRows(clear), success(); })
      .Case<SubmatrixOp>([&](SubmatrixOp part) {
        Value row = mapping.lookupOrDefault(part.getRow());
        Value start = b.add(copyAddress(part.getBuffer(), part.getCopy()),
                            b.mul(row, b.i32(2 * BufferType::kPanelColumns)));
        // Whole panels, so the distance per column is a whole number.
        if (part.getColumn())
          start = b.add(start,
                        b.mul(mapping.lookupOrDefault(part.getColumn()),
                              b.i32(part.getBuffer().getType().getPanelBytes() /
                                    BufferType::kPanelColumns)));
        mapping.map(part.getMatrix(), start);
        return success();
      })
      .Case<ProductFenceOp>([&](auto) {
        b.assembly("wgmma.fence.sync.aligned;", "~{memory}", {});
        return success();
      })
      .Case<ProductCommitOp>([&](auto) {
        b.assembly("wgmma.commit_group.sync.aligned;", "~{memory}", {});
        return success();
      })
      .Case<AccumulatorOp>([&](AccumulatorOp start) {
        tiles[start.getFlight()] = tiles[start.getTile()];
        return success();
      })
      .Case<ProductOp>(
          [&](auto product) { return emitProduct(product), success(); })
      .Case<ProductWaitOp>(
          [&](auto wait) { return emitProductWait(wait), success(); })
      .Default([](Operation *other) {
        return other->emitError("is not expected in a role");
      });
}
