//===- WarpgroupRecord.cpp - schedule records for sm_90a
//-------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Tile/Families/WarpgroupRecord.h"

using namespace mlir;
using namespace hybrid::tile;

static constexpr llvm::StringLiteral kLoad = "load", kMultiply = "multiply";
/// What a thread that only issues copies needs; the least that can be set.
static constexpr int64_t kLoadRegisters = 24;

WarpgroupRecord::WarpgroupRecord(ProgramOp program, int64_t warpgroups,
                                 int64_t registers)
    : program(program), builder(program.getContext()) {
  auto role = [&](StringRef name, int64_t groups, int64_t each) {
    roles.set(name, builder.getDictionaryAttr(
                        {builder.getNamedAttr(
                             "warpgroups", builder.getI64IntegerAttr(groups)),
                         builder.getNamedAttr(
                             "registers", builder.getI64IntegerAttr(each))}));
  };
  role(kLoad, 1, kLoadRegisters);
  role(kMultiply, warpgroups, registers);
}

WarpgroupRecord &WarpgroupRecord::load(StringRef name, int64_t buffers) {
  NamedAttrList entry;
  entry.set("role", builder.getStringAttr(kLoad));
  entry.set("buffers", builder.getI64IntegerAttr(buffers));
  entry.set("barrier", builder.getStringAttr("mbarrier"));
  ops.set(name, entry.getDictionary(builder.getContext()));
  return *this;
}

WarpgroupRecord &WarpgroupRecord::multiply(StringRef name,
                                           const Fields &fields) {
  NamedAttrList entry;
  entry.set("role", builder.getStringAttr(kMultiply));
  auto number = [&](StringRef key, std::optional<int64_t> value) {
    if (value)
      entry.set(key, builder.getI64IntegerAttr(*value));
  };
  number("stage", fields.stage);
  number("issue", fields.issue);
  number("wait", fields.wait);
  if (fields.takesTurns)
    entry.set("barrier", builder.getStringAttr("turn"));
  ops.set(name, entry.getDictionary(builder.getContext()));
  return *this;
}

WarpgroupRecord &WarpgroupRecord::traverse(ArrayRef<int64_t> dims,
                                           int64_t group) {
  traversal.set("hopper.traversal", builder.getDenseI64ArrayAttr(dims));
  if (group > 1)
    traversal.set("hopper.group", builder.getI64IntegerAttr(group));
  return *this;
}

WarpgroupRecord &WarpgroupRecord::persist() {
  traversal.set("hopper.persistent", builder.getUnitAttr());
  return *this;
}

WarpgroupRecord &WarpgroupRecord::descend(ArrayRef<int64_t> dims) {
  traversal.set("hopper.descending", builder.getDenseI64ArrayAttr(dims));
  return *this;
}

ScheduleOp WarpgroupRecord::write() {
  OpBuilder behind(program.getContext());
  behind.setInsertionPointAfter(program);
  MLIRContext *context = program.getContext();
  auto record = ScheduleOp::create(
      behind, program.getLoc(), program.getSymName(), "sm_90a",
      roles.getDictionary(context), ops.getDictionary(context));
  record->setDiscardableAttrs(traversal.getDictionary(context));
  return record;
}
