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

/// A whole buffer that an entry takes or gives.
struct Flat {
  StringRef role;
  Type type;
};

static func::FuncOp createEntry(ModuleOp module, StringRef name,
                                ArrayRef<Flat> arguments,
                                ArrayRef<Flat> results) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  Location loc = NameLoc::get(builder.getStringAttr(name));
  auto typesOf = [](ArrayRef<Flat> buffers) {
    return llvm::map_to_vector(
        buffers, [](const Flat &flat) -> Type { return flat.type; });
  };
  auto function = func::FuncOp::create(
      builder, loc, name,
      builder.getFunctionType(typesOf(arguments), typesOf(results)));
  function->setAttr("hybrid.entry", builder.getStringAttr(name));
  for (auto [index, flat] : llvm::enumerate(arguments))
    function.setArgAttr(index, "hybrid.role", builder.getStringAttr(flat.role));
  for (auto [index, flat] : llvm::enumerate(results))
    function.setResultAttr(index, "hybrid.role",
                           builder.getStringAttr(flat.role));
  function.addEntryBlock();
  return function;
}

static tile::OptimiserShape shapeOf(const Scheduler &scheduler,
                                    const ModelTables &tables) {
  ParameterLayout layout(tables.params);
  tile::OptimiserShape shape;
  shape.block = scheduler.target.optimiserBlock;
  shape.elements = layout.elements;
  shape.decayElements = layout.decayElements;
  if (!tables.meta.computeType.isF32())
    shape.copyElement = tables.meta.computeType;
  return shape;
}

LogicalResult hybrid::addUpdate(Scheduler &scheduler, ModuleOp module) {
  FailureOr<ModelTables> tables = getModelTables(module);
  if (failed(tables))
    return failure();
  tile::OptimiserShape shape = shapeOf(scheduler, *tables);
  Type f32 = Float32Type::get(module.getContext());
  auto flat = RankedTensorType::get({shape.elements}, f32);
  auto scalarsType = RankedTensorType::get({tile::NumOptimiserScalars}, f32);
  auto partials = RankedTensorType::get({shape.blocks()}, f32);
  SmallVector<Flat> results = {{"param", flat},
                               {"moment1", flat},
                               {"moment2", flat},
                               {"scalars", scalarsType}};
  SmallVector<Type> stepped(3, flat);
  if (shape.copyElement) {
    stepped.push_back(flat.clone(shape.copyElement));
    results.push_back({"param_copy", stepped.back()});
  }
  // All but the gradient come back, in place.
  func::FuncOp function = createEntry(module, "update",
                                      {{"param", flat},
                                       {"gradient", flat},
                                       {"moment1", flat},
                                       {"moment2", flat},
                                       {"scalars", scalarsType}},
                                      results);
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
      {parameters, gradient, moment1, moment2, norm->getResult(0)}, stepped,
      /*ties=*/{0, 0, 1, 2, 2, 3});
  SmallVector<Value> returned(step->getResults().take_front(3));
  returned.push_back(norm->getResult(0));
  llvm::append_range(returned, step->getResults().drop_front(3));
  func::ReturnOp::create(builder, loc, returned);
  return success();
}

LogicalResult hybrid::addParameterCopy(Scheduler &scheduler, ModuleOp module) {
  bool isRead = false;
  module.walk([&](CastOp cast) { isRead |= cast.isParameterCopy(); });
  if (!isRead)
    return success();
  FailureOr<ModelTables> tables = getModelTables(module);
  if (failed(tables))
    return failure();
  tile::OptimiserShape shape = shapeOf(scheduler, *tables);
  if (!shape.copyElement)
    return module.emitError("casts parameters, but hybrid.meta gives no "
                            "narrower type; run hybrid-build-graph");
  auto flat = RankedTensorType::get({shape.elements},
                                    Float32Type::get(module.getContext()));
  Type copy = flat.clone(shape.copyElement);
  func::FuncOp function = createEntry(
      module, "copy_parameters", {{"param", flat}}, {{"param_copy", copy}});
  Block &body = function.getBody().front();
  OpBuilder builder = OpBuilder::atBlockEnd(&body);
  Location loc = function.getLoc();
  tile::ProgramOp program = scheduler.programs.get(
      function, "copy", [&](OpBuilder &programs, ModuleOp) {
        return tile::buildParameterCopy(programs, loc, shape);
      });
  DispatchOp dispatch =
      scheduler.dispatch(builder, loc, program, body.getArgument(0), copy);
  func::ReturnOp::create(builder, loc, dispatch->getResults());
  return success();
}
