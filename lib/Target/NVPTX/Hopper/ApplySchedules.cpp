//===- ApplySchedules.cpp - scheduled programs as hopper kernels ----------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Roles.h"

#include "hybrid/Target/NVPTX/Passes.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"

namespace hybrid {
#define GEN_PASS_DEF_HYBRIDHOPPERAPPLYSCHEDULES
#include "hybrid/Target/NVPTX/Passes.h.inc"
} // namespace hybrid

using namespace mlir;
using namespace hybrid;
using namespace hybrid::hopper;

/// Memory of the copies, and barriers that say who may use them.
static FailureOr<Ring> makeRing(ImplicitLocOpBuilder &b, tile::LoadOp load,
                                const Record &record, Value view) {
  auto type = load.getTile().getType();
  if (type.getRank() != 2)
    return load.emitError("reads ")
           << type << "; the role that loads brings matrices";
  ArrayRef<int64_t> dims = load.getDims();
  auto viewType = cast<tile::ViewType>(view.getType());
  Type element = type.getElementType();
  auto emitError = [&] { return load.emitError(); };
  SmallVector<int64_t> box(viewType.getRank(), 1);
  box[dims[0]] = type.getDimSize(0);
  box[dims[1]] = BufferType::kPanelColumns;
  Ring ring;
  ring.load = load;
  ring.loop = load->getParentOfType<scf::ForOp>();
  if (ring.loop && ring.loop->getParentOfType<scf::ForOp>())
    return load.emitError("is in a loop of a loop; barriers count the "
                          "iterations of one");
  int64_t copies = ring.loop ? record.number(load, "buffers", 1) : 1;
  auto mapType = MapType::getChecked(emitError, b.getContext(),
                                     ArrayRef<int64_t>(box), element);
  auto bufferType = BufferType::getChecked(
      emitError, b.getContext(),
      ArrayRef<int64_t>{copies, type.getDimSize(0), type.getDimSize(1)},
      element);
  if (!mapType || !bufferType)
    return failure();
  auto barriers = BarriersType::get(b.getContext(), copies);
  ring.map = TensorMapOp::create(b, mapType, view).getMap();
  ring.buffer = AllocateOp::create(b, bufferType).getBuffer();
  ring.full = MakeBarriersOp::create(b, barriers, 1).getBarriers();
  constexpr int64_t kWarps = kWarpgroupThreads / 32;
  if (ring.loop)
    ring.empty =
        MakeBarriersOp::create(b, barriers, kWarps * record.worker().warpgroups)
            .getBarriers();
  return ring;
}

/// The program as one role, of a persistent kernel for a point after another.
template <typename Role>
static LogicalResult emitRole(ImplicitLocOpBuilder &b, Role role,
                              tile::ProgramOp program, const Record &record,
                              IRMapping mapping) {
  if (!record.isPersistent())
    return role.emit(program.getBlock(), mapping);
  Value first = BlockNumberOp::create(b), end = TasksOp::create(b),
        step = BlockCountOp::create(b);
  Value none = arith::ConstantIndexOp::create(b, 0);
  auto loop = scf::ForOp::create(b, first, end, step, ValueRange{none});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  role.beginTask(loop.getInductionVar(), loop.getRegionIterArg(0));
  if (failed(role.emit(program.getBlock(), mapping)))
    return failure();
  assert(role.endTask() && "loads outside of one loop are refused before");
  b.setLoc(program.getLoc());
  scf::YieldOp::create(b, role.endTask());
  return success();
}

static LogicalResult apply(tile::ProgramOp program, const Record &record) {
  OpBuilder builder(program);
  ImplicitLocOpBuilder b(program.getLoc(), builder);
  SmallVector<Type> types(llvm::map_range(
      program.getViews(), [](BlockArgument view) { return view.getType(); }));
  auto kernel = KernelOp::create(b, program.getSymName(), program.getGrid(),
                                 record.traversal(), record.descending(),
                                 record.group(), types);
  b.setInsertionPointToStart(&kernel.getBlock());
  IRMapping mapping;
  mapping.map(program.getViews(), kernel.getViews());
  SmallVector<Ring> rings;
  for (tile::LoadOp load : record.getLoads()) {
    FailureOr<Ring> ring =
        makeRing(b, load, record, mapping.lookup(load.getView()));
    if (failed(ring))
      return failure();
    rings.push_back(*ring);
  }
  const RoleSize &loads = record.loader(), &works = record.worker();
  auto roles = RolesOp::create(b, ArrayRef{loads.warpgroups, works.warpgroups},
                               ArrayRef{loads.registers, works.registers},
                               ArrayRef{true, false}, /*bodiesCount=*/2);
  for (Region &body : roles.getBodies()) {
    b.setInsertionPointToStart(&body.emplaceBlock());
    LogicalResult emitted =
        body.getRegionNumber() == 0
            ? emitRole(b, Loader(b, record, rings), program, record, mapping)
            : emitRole(b, Worker(b, record, rings), program, record, mapping);
    if (failed(emitted))
      return failure();
    b.setLoc(program.getLoc());
    YieldOp::create(b);
  }
  if (failed(kernel.verify()))
    return failure();
  IRRewriter rewriter(program.getContext());
  (void)runRegionDCE(rewriter, kernel->getRegions());
  return success();
}

namespace {
struct ApplySchedules
    : hybrid::impl::HybridHopperApplySchedulesBase<ApplySchedules> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (auto schedule : llvm::make_early_inc_range(
             getOperation().getOps<tile::ScheduleOp>())) {
      if (schedule.getTarget() != kTarget)
        continue;
      auto program = symbols.lookup<tile::ProgramOp>(schedule.getProgram());
      FailureOr<Record> record = Record::read(program, schedule);
      if (failed(record) || failed(apply(program, *record)))
        return signalPassFailure();
      schedule.erase();
      program.erase();
      ++applied;
    }
  }
};
} // namespace
