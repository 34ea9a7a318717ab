//===- Record.cpp - a schedule record and what it asks of a program -------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Record.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::hopper;

DictionaryAttr Record::entryOf(Operation *op) const {
  auto name = op->getAttrOfType<StringAttr>(tile::TileDialect::kNameAttr);
  if (!name)
    return {};
  return schedule.getOps().getAs<DictionaryAttr>(name.getValue());
}

int64_t Record::number(Operation *op, StringRef key, int64_t otherwise) const {
  DictionaryAttr entry = entryOf(op);
  auto value = entry ? entry.getAs<IntegerAttr>(key) : IntegerAttr();
  return value ? value.getInt() : otherwise;
}

bool Record::takesTurns(Operation *op) const {
  DictionaryAttr entry = entryOf(op);
  auto value = entry ? entry.getAs<StringAttr>("barrier") : StringAttr();
  return value && value.getValue() == "turn";
}

bool Record::isLoad(Operation *op) const {
  auto load = dyn_cast<tile::LoadOp>(op);
  return load && llvm::is_contained(loadOps, load);
}

SmallVector<int64_t> Record::traversal() const {
  if (auto order = schedule->getAttrOfType<DenseI64ArrayAttr>(
          HopperDialect::kTraversalAttr))
    return SmallVector<int64_t>(order.asArrayRef());
  return llvm::to_vector(llvm::seq<int64_t>(0, program.getGridRank()));
}
SmallVector<int64_t> Record::descending() const {
  auto dims = schedule->getAttrOfType<DenseI64ArrayAttr>(
      HopperDialect::kDescendingAttr);
  return dims ? SmallVector<int64_t>(dims.asArrayRef())
              : SmallVector<int64_t>();
}
int64_t Record::group() const {
  auto size = schedule->getAttrOfType<IntegerAttr>(HopperDialect::kGroupAttr);
  return size ? size.getInt() : 1;
}

bool Record::isPersistent() const {
  return schedule->hasAttr(HopperDialect::kPersistentAttr);
}

/// Barriers go on counting from one point to the next, and that is known of one
/// loop.
LogicalResult Record::checkPersistent() {
  auto loop = loadOps.front()->getParentOfType<scf::ForOp>();
  bool isInProgram = loop && loop->getParentOp() == program.getOperation();
  for (tile::LoadOp load : loadOps)
    if (!isInProgram || load->getParentOp() != loop)
      return load.emitError("is not in one loop of the program with the other "
                            "loads; leave out ")
             << HopperDialect::kPersistentAttr;
  WalkResult walked = program.getBody().walk([&](Operation *op) -> WalkResult {
    if (takesTurns(op))
      return op->emitError("takes turns, which begin anew with every point; "
                           "leave out ")
             << HopperDialect::kPersistentAttr;
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

/// The role of the loads that go through barriers, and that of everything else.
LogicalResult Record::findRoles() {
  auto sizeOf = [&](StringAttr name) {
    auto fields = schedule.getRoles().getAs<DictionaryAttr>(name.getValue());
    return RoleSize{name, fields.getAs<IntegerAttr>("warpgroups").getInt(),
                    fields.getAs<IntegerAttr>("registers").getInt()};
  };
  StringAttr loader;
  program.getBody().walk([&](tile::LoadOp load) {
    DictionaryAttr entry = entryOf(load);
    auto barrier = entry ? entry.getAs<StringAttr>("barrier") : StringAttr();
    if (!barrier || barrier.getValue() != "mbarrier")
      return;
    loadOps.push_back(load);
    loader = entry.getAs<StringAttr>("role");
  });
  if (loadOps.empty())
    return schedule.emitOpError("has no load with the barrier 'mbarrier'; ")
           << kTarget << " kernels load their operands so";
  if (schedule.getRoles().size() != 2)
    return schedule.emitOpError("has ")
           << schedule.getRoles().size()
           << " roles; a kernel has one that loads and one that multiplies";
  for (NamedAttribute role : schedule.getRoles())
    (role.getName() == loader ? loads : works) = sizeOf(role.getName());
  for (NamedAttribute entry : schedule.getOps()) {
    Operation *op = program.lookupNamedOp(entry.getName());
    auto role =
        cast<DictionaryAttr>(entry.getValue()).getAs<StringAttr>("role");
    if (isLoad(op) != (role == loads.name))
      return schedule.emitOpError("op '")
             << entry.getName().getValue() << "' has the role " << role
             << "; role " << loads.name
             << " is that of the loads with the barrier 'mbarrier' and of "
                "nothing else";
  }
  if (loads.warpgroups != 1)
    return schedule.emitOpError("role ")
           << loads.name << " has " << loads.warpgroups
           << " warpgroups; one thread issues all copies";
  return success();
}

LogicalResult Record::checkProgram() {
  for (tile::Order order : llvm::map_range(
           program.getOrder().getAsRange<tile::OrderAttr>(),
           [](tile::OrderAttr attribute) { return attribute.getValue(); }))
    if (order != tile::Order::parallel)
      return program.emitError("has an ordered grid dim; a schedule for ")
             << kTarget << " needs parallel ones";
  WalkResult loaded = program.getBody().walk([&](tile::LoadOp load) {
    if (!program.writes(cast<BlockArgument>(load.getView())))
      return WalkResult::advance();
    load.emitError("reads a view that the program writes; ")
        << (isLoad(load) ? "bulk copies are not ordered with stores"
                         : "warpgroups do not wait for each other's stores");
    return WalkResult::interrupt();
  });
  if (loaded.wasInterrupted())
    return failure();
  WalkResult walked = program.getBody().walk([&](Operation *op) -> WalkResult {
    auto dot = dyn_cast<tile::DotOp>(op);
    if (!dot)
      return WalkResult::advance();
    auto type = cast<RankedTensorType>(dot.getResult().getType());
    auto left = cast<RankedTensorType>(dot.getA().getType());
    if (type.getDimSize(0) != rows())
      return dot.emitError("has ")
             << type.getDimSize(0) << " rows, the " << works.warpgroups
             << " warpgroups of role " << works.name << " take " << rows();
    auto load = dot.getA().getDefiningOp<tile::LoadOp>();
    bool isShared = load && isLoad(load);
    if ((dot.getTransposeA() && !isShared) || !type.getElementType().isF32() ||
        !(left.getElementType().isBF16() || left.getElementType().isF16()))
      return dot.emitError("a product of warpgroups has a left operand of bf16 "
                           "or f16, in rows where it is not loaded by role ")
             << loads.name << ", and f32 sums, got " << left
             << (dot.getTransposeA() ? " transposed" : "") << " and " << type;
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

FailureOr<Record> Record::read(tile::ProgramOp program,
                               tile::ScheduleOp schedule) {
  Record record;
  record.program = program;
  record.schedule = schedule;
  if (failed(record.findRoles()) || failed(record.checkProgram()) ||
      (record.isPersistent() && failed(record.checkPersistent())))
    return failure();
  return record;
}
