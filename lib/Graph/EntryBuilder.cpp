//===- EntryBuilder.cpp - one entry point under construction -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EntryBuilder.h"

#include "hybrid/Hybrid/NumberText.h"

using namespace mlir;
using namespace hybrid;

EntryBuilder::EntryBuilder(ModuleOp module, StackOp stack, StringRef name,
                           bool cached)
    : stack(stack), builder(OpBuilder::atBlockEnd(module.getBody())),
      specLoc(stack.getLoc()), cached(cached) {
  function = func::FuncOp::create(builder, stack.getLoc(), name,
                                  builder.getFunctionType({}, {}));
  function->setAttr("hybrid.entry", builder.getStringAttr(name));
  // For phase grad, which differentiates the entry without states.
  if (Attribute recompute = stack->getAttr("hybrid.recompute");
      recompute && !cached)
    function->setAttr("hybrid.recompute", recompute);
  body = function.addEntryBlock();
  builder.setInsertionPointToStart(body);
}

//===----------------------------------------------------------------------===//
// Arguments and results
//===----------------------------------------------------------------------===//

Value EntryBuilder::addArgument(unsigned index, StringRef role, Type type,
                                Location loc) {
  argumentAttributes.insert(
      argumentAttributes.begin() + index,
      {builder.getNamedAttr("hybrid.role", builder.getStringAttr(role))});
  return body->insertArgument(index, type, loc);
}

Value EntryBuilder::input(StringRef role, Type type) {
  return addArgument(params.size() + inputs++, role, type, stack.getLoc());
}

Value EntryBuilder::segments() {
  if (!segmentsValue)
    segmentsValue = input("segments", SegmentsType::get(builder.getContext()));
  return segmentsValue;
}

Value EntryBuilder::param(StringRef name, ArrayRef<int64_t> shape,
                          std::string init, bool decay) {
  std::string path = prefix + name.str();
  // Tied weights are one parameter that is used twice.
  for (auto [index, row] : llvm::enumerate(params))
    if (row.path == path)
      return body->getArgument(index);
  unsigned index = params.size();
  Value value =
      addArgument(index, "param",
                  RankedTensorType::get(shape, builder.getF32Type()), at(name));
  argumentAttributes[index].push_back(
      builder.getNamedAttr("hybrid.path", builder.getStringAttr(path)));
  params.push_back({path, SmallVector<int64_t>(shape), std::move(init), decay});
  return value;
}

Value EntryBuilder::matrix(StringRef name, int64_t rows, int64_t columns,
                           double std) {
  return param(name, {rows, columns}, "normal(" + formatNumber(std) + ")",
               /*decay=*/true);
}

Value EntryBuilder::state(StringRef name, StringRef kind, Type element,
                          ArrayRef<int64_t> shape, AffineExpr rows) {
  SmallVector<int64_t> sizes = {ShapedType::kDynamic};
  llvm::append_range(sizes, shape);
  AffineMapAttr rowsMap;
  if (rows)
    rowsMap = AffineMapAttr::get(AffineMap::get(0, numCallSymbols, rows));
  auto type = RankedTensorType::get(
      sizes, element, SlotsAttr::get(builder.getContext(), rowsMap));

  std::string path = prefix + name.str();
  unsigned index = body->getNumArguments();
  Value value = addArgument(index, "state", type, at(name));
  argumentAttributes[index].push_back(
      builder.getNamedAttr("hybrid.path", builder.getStringAttr(path)));
  states.push_back({path, kind.str(), type});
  newStates.push_back(nullptr);
  return value;
}

void EntryBuilder::setNewState(StringRef name, Value value) {
  std::string path = prefix + name.str();
  for (auto [row, newState] : llvm::zip_equal(states, newStates))
    if (row.path == path)
      newState = value;
}

void EntryBuilder::finish(StringRef role, Value result) {
  SmallVector<Value> results = {result};
  SmallVector<Attribute> resultAttributes = {builder.getDictionaryAttr(
      builder.getNamedAttr("hybrid.role", builder.getStringAttr(role)))};
  for (auto [row, newState] : llvm::zip_equal(states, newStates)) {
    assert(newState && "a state that the entry reads and does not write");
    results.push_back(newState);
    resultAttributes.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr("hybrid.role", builder.getStringAttr("state")),
         builder.getNamedAttr("hybrid.path",
                              builder.getStringAttr(row.path))}));
  }
  func::ReturnOp::create(builder, stack.getLoc(), results);

  function.setFunctionType(builder.getFunctionType(
      body->getArgumentTypes(), ValueRange(results).getTypes()));
  SmallVector<Attribute> attributes;
  for (auto &argument : argumentAttributes)
    attributes.push_back(builder.getDictionaryAttr(argument));
  function.setArgAttrsAttr(builder.getArrayAttr(attributes));
  function.setResAttrsAttr(builder.getArrayAttr(resultAttributes));
}

//===----------------------------------------------------------------------===//
// Pieces of a layer
//===----------------------------------------------------------------------===//

Location EntryBuilder::at(StringRef name) {
  return NameLoc::get(builder.getStringAttr(prefix + name), specLoc);
}

RankedTensorType EntryBuilder::tensor(ArrayRef<int64_t> shape, Type element) {
  SmallVector<int64_t> sizes = {ShapedType::kDynamic};
  llvm::append_range(sizes, shape);
  return RankedTensorType::get(sizes, element);
}

Value EntryBuilder::castTo(Value x, Type element) {
  auto type = cast<RankedTensorType>(x.getType());
  if (type.getElementType() == element)
    return x;
  auto create = [&] {
    return CastOp::create(builder, x.getLoc(), type.clone(element), x);
  };
  // Every use of a tied weight has a gradient of its own.
  if (element == f32() || isa<BlockArgument>(x))
    return create();
  Value &known = narrowed[x];
  if (!known)
    known = create();
  return known;
}

static int64_t getLastDim(Value x) {
  return cast<RankedTensorType>(x.getType()).getShape().back();
}

static Type elementOf(Value x) {
  return cast<RankedTensorType>(x.getType()).getElementType();
}

Value EntryBuilder::linear(StringRef name, Value x, int64_t width, double std,
                           Type result) {
  x = narrow(x);
  Value weight =
      narrow(matrix((name + ".weight").str(), width, getLastDim(x), std));
  auto type = cast<RankedTensorType>(x.getType());
  return ProductOp::create(builder, at(name),
                           type.clone({type.getDimSize(0), width}, result), x,
                           weight, /*transpose_a=*/false, /*transpose_b=*/true);
}

Value EntryBuilder::project(StringRef name, Value x) {
  size_t layers = stack.getBody().front().getOperations().size();
  return linear(name, x, stack.getWidth(),
                stack.getInitStd() / std::sqrt(2.0 * layers));
}

Value EntryBuilder::rmsNorm(StringRef name, Value x) {
  x = widen(x);
  Value weight = param((name + ".weight").str(), getLastDim(x), "ones",
                       /*decay=*/false);
  Value unit =
      NormalizeOp::create(builder, at(name), x.getType(), NormKind::rms, x,
                          llvm::APFloat(stack.getEpsilon()));
  return MulOp::create(builder, at(name), x.getType(), unit, weight);
}

Value EntryBuilder::dropout(StringRef name, Value x) {
  if (dropoutRate == 0)
    return x;
  std::string part = name.str() + ".dropout";
  Value key =
      input("random_key", RankedTensorType::get(1, builder.getI32Type()));
  argumentAttributes[cast<BlockArgument>(key).getArgNumber()].push_back(
      builder.getNamedAttr("hybrid.path",
                           builder.getStringAttr(prefix + part)));
  return DropoutOp::create(builder, at(part), widen(x), key,
                           llvm::APFloat(dropoutRate));
}

Value EntryBuilder::splitHeads(StringRef name, Value x, int64_t heads) {
  return ReshapeOp::create(builder, at(name),
                           tensor({heads, getLastDim(x) / heads}, elementOf(x)),
                           x);
}

Value EntryBuilder::joinHeads(StringRef name, Value x) {
  auto type = cast<RankedTensorType>(x.getType());
  return ReshapeOp::create(
      builder, at(name),
      tensor(type.getDimSize(1) * type.getDimSize(2), elementOf(x)), x);
}
