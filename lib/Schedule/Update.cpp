//===- Update.cpp - the optimiser's step as an entry -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Entry `update` is not a graph function: it is one AdamW step over the flat
// buffers, the same three launches for every model.
//
//===----------------------------------------------------------------------===//

#include "Scheduler.h"

#include "hybrid/Graph/ParameterLayout.h"
#include "hybrid/Tile/Families/Optimiser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace hybrid;

/// `update(parameters, gradient, moment 1, moment 2, scalars)` gives back all
/// but the gradient, in place.
static func::FuncOp createUpdate(ModuleOp module, RankedTensorType flat,
                                 RankedTensorType scalars) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  Location loc = NameLoc::get(builder.getStringAttr("update"));
  Type arguments[] = {flat, flat, flat, flat, scalars};
  Type results[] = {flat, flat, flat, scalars};
  auto function = func::FuncOp::create(
      builder, loc, "update", builder.getFunctionType(arguments, results));
  function->setAttr("hybrid.entry", builder.getStringAttr("update"));
  StringRef roles[] = {"param", "gradient", "moment1", "moment2", "scalars"};
  for (auto [index, role] : llvm::enumerate(roles))
    function.setArgAttr(index, "hybrid.role", builder.getStringAttr(role));
  unsigned returned[] = {0, 2, 3, 4};
  for (auto [index, role] : llvm::enumerate(returned))
    function.setResultAttr(index, "hybrid.role",
                           builder.getStringAttr(roles[role]));
  function.addEntryBlock();
  return function;
}

LogicalResult hybrid::addUpdate(Scheduler &scheduler, ModuleOp module) {
  FailureOr<ModelTables> tables = getModelTables(module);
  if (failed(tables))
    return failure();
  ParameterLayout layout(tables->params);
  tile::OptimiserShape shape;
  shape.block = scheduler.target.optimiserBlock;
  shape.elements = layout.elements;
  shape.decayElements = layout.decayElements;

  Type f32 = Float32Type::get(module.getContext());
  auto flat = RankedTensorType::get({layout.elements}, f32);
  auto scalarsType = RankedTensorType::get({tile::NumOptimiserScalars}, f32);
  auto partials = RankedTensorType::get({shape.blocks()}, f32);
  func::FuncOp function = createUpdate(module, flat, scalarsType);
  Block &body = function.getBody().front();
  Value parameters = body.getArgument(0), gradient = body.getArgument(1),
        moment1 = body.getArgument(2), moment2 = body.getArgument(3),
        scalars = body.getArgument(4);

  OpBuilder builder = OpBuilder::atBlockEnd(&body);
  Location loc = function.getLoc();
  auto program = [&](StringRef variant, auto build) {
    return scheduler.programs.get(function, variant,
                                  [&](OpBuilder &programs, ModuleOp) {
                                    return build(programs, loc, shape);
                                  });
  };
  DispatchOp squares = scheduler.dispatch(
      builder, loc, program("squares", tile::buildGradientSquares),
      {gradient, scalars}, partials);
  DispatchOp norm = scheduler.dispatch(
      builder, loc, program("norm", tile::buildGradientNorm),
      {squares->getResult(0), scalars}, scalarsType, /*ties=*/{0, 1});
  DispatchOp step = scheduler.dispatch(
      builder, loc, program("step", tile::buildAdamW),
      {parameters, gradient, moment1, moment2, norm->getResult(0)},
      {flat, flat, flat}, /*ties=*/{0, 0, 1, 2, 2, 3});
  func::ReturnOp::create(builder, loc,
                         ValueRange{step->getResult(0), step->getResult(1),
                                    step->getResult(2), norm->getResult(0)});
  return success();
}
