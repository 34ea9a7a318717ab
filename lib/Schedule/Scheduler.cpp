//===- Scheduler.cpp - what a strategy works with -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Scheduler.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IntegerSet.h"

using namespace mlir;
using namespace hybrid;

DispatchOp Scheduler::dispatch(OpBuilder &builder, Location loc,
                               tile::ProgramOp program, ValueRange inputs,
                               TypeRange outputs, ArrayRef<int64_t> ties) {
  ++numDispatches;
  auto tiesAttr =
      ties.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(ties);
  return DispatchOp::create(builder, loc, outputs,
                            FlatSymbolRefAttr::get(program.getSymNameAttr()),
                            inputs, tiesAttr, PlainProductAttr());
}

ValueRange Scheduler::either(OpBuilder &builder, Location loc, TypeRange types,
                             AffineExpr guard, Algorithm guarded,
                             Algorithm general) {
  OpBuilder::InsertionGuard restore(builder);
  auto set = IntegerSet::get(0, numCallSymbols, {guard}, {false});
  auto either = AlternativesOp::create(
      builder, loc, types, builder.getArrayAttr(IntegerSetAttr::get(set)),
      /*algorithmsCount=*/2);
  Algorithm algorithms[] = {guarded, general};
  for (auto [region, algorithm] :
       llvm::zip_equal(either.getAlgorithms(), algorithms)) {
    builder.createBlock(&region);
    YieldOp::create(builder, loc, algorithm(builder));
  }
  ++numAlternatives;
  return either->getResults();
}

void Scheduler::chose(Operation *op, llvm::StringLiteral id,
                      const Twine &strategy, const Twine &reason) {
  auto remark = remark::passed(
      op->getLoc(), remark::RemarkOpts::name(id).category("schedule"));
  if (!remark)
    return;
  remark << strategy.str() << remark::reason("{0}", reason.str());
}

bool hybrid::isDecoded(Operation *op) {
  auto function = op->getParentOfType<func::FuncOp>();
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    auto role = function.getArgAttrOfType<StringAttr>(index, "hybrid.role");
    if (role && role == "state")
      return true;
  }
  return false;
}

Type hybrid::elementOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementType();
}

LogicalResult hybrid::roundInto(Scheduler &scheduler, OpBuilder &builder,
                                Value value, Value old) {
  if (value.getType() == old.getType()) {
    old.replaceAllUsesWith(value);
    return success();
  }
  auto rounded = CastOp::create(builder, value.getLoc(), old.getType(), value);
  old.replaceAllUsesWith(rounded);
  return scheduleRowwise(scheduler, rounded);
}

RankedTensorType hybrid::workspaceType(AffineMap leading,
                                       ArrayRef<int64_t> sizes, Type element) {
  SmallVector<int64_t> shape(leading.getNumResults(), ShapedType::kDynamic);
  llvm::append_range(shape, sizes);
  MLIRContext *context = leading.getContext();
  return RankedTensorType::get(
      shape, element ? element : Float32Type::get(context),
      SizedAttr::get(context, AffineMapAttr::get(leading)));
}
