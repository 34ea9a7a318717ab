//===- PlanJSON.cpp - the plan as it stands in an artefact -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Plan/Plan.h"

#include "hybrid/Hybrid/GraphShapes.h"

using namespace mlir;
using namespace hybrid;
namespace json = llvm::json;

llvm::StringRef hybrid::stringifyBufferKind(BufferKind kind) {
  switch (kind) {
  case BufferKind::Arena:
    return "arena";
  case BufferKind::Param:
    return "param";
  case BufferKind::ParamCopy:
    return "param_copy";
  case BufferKind::Gradient:
    return "gradient";
  case BufferKind::State:
    return "state";
  case BufferKind::Ids:
    return "ids";
  case BufferKind::TokensById:
    return "tokens_by_id";
  case BufferKind::Labels:
    return "labels";
  case BufferKind::Weights:
    return "weights";
  case BufferKind::SegmentTable:
    return "segment_table";
  case BufferKind::TokenSegment:
    return "token_segment";
  case BufferKind::RandomKey:
    return "random_key";
  case BufferKind::Loss:
    return "loss";
  case BufferKind::Logits:
    return "logits";
  case BufferKind::Moment1:
    return "moment1";
  case BufferKind::Moment2:
    return "moment2";
  case BufferKind::Scalars:
    return "scalars";
  case BufferKind::Input:
    return "input";
  case BufferKind::Output:
    return "output";
  case BufferKind::Constant:
    return "constant";
  }
  llvm_unreachable("unknown buffer kind");
}

std::string hybrid::stringifyElementType(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

json::Value hybrid::exprToJSON(AffineExpr expr) {
  auto binary = [&](StringRef name) {
    auto op = cast<AffineBinaryOpExpr>(expr);
    return json::Array{name, exprToJSON(op.getLHS()), exprToJSON(op.getRHS())};
  };
  switch (expr.getKind()) {
  case AffineExprKind::Constant:
    return cast<AffineConstantExpr>(expr).getValue();
  case AffineExprKind::SymbolId:
    return stringifyCallSymbol(
        static_cast<CallSymbol>(cast<AffineSymbolExpr>(expr).getPosition()));
  case AffineExprKind::Add:
    return binary("add");
  case AffineExprKind::Mul:
    return binary("mul");
  case AffineExprKind::FloorDiv:
    return binary("floordiv");
  case AffineExprKind::CeilDiv:
    return binary("ceildiv");
  case AffineExprKind::Mod: {
    // a mod b = a - (a floordiv b) * b, for the b > 0 that affine maps have.
    auto op = cast<AffineBinaryOpExpr>(expr);
    json::Value quotient = json::Array{"floordiv", exprToJSON(op.getLHS()),
                                       exprToJSON(op.getRHS())};
    return json::Array{"add", exprToJSON(op.getLHS()),
                       json::Array{"mul", -1,
                                   json::Array{"mul", std::move(quotient),
                                               exprToJSON(op.getRHS())}}};
  }
  case AffineExprKind::DimId:
    // Of a piece.
    return "row";
  }
  llvm_unreachable("unknown kind of expression");
}

static json::Array exprsToJSON(ArrayRef<AffineExpr> exprs) {
  json::Array array;
  for (AffineExpr expr : exprs)
    array.push_back(exprToJSON(expr));
  return array;
}

static json::Value guardToJSON(ArrayRef<PlanConstraint> guard) {
  if (guard.empty())
    return nullptr;
  json::Value predicate = nullptr;
  for (PlanConstraint constraint : guard) {
    json::Value term = json::Array{"ge", exprToJSON(constraint), 0};
    if (predicate.kind() == json::Value::Null)
      predicate = std::move(term);
    else
      predicate = json::Array{"and", std::move(predicate), std::move(term)};
  }
  return predicate;
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

static json::Value kernelToJSON(const PlanKernel &kernel) {
  json::Array parallel;
  for (bool dim : kernel.parallel)
    parallel.push_back(dim);
  json::Object object{{"symbol", kernel.symbol},
                      {"name", kernel.name},
                      {"grid", exprsToJSON(kernel.grid)},
                      {"parallel", std::move(parallel)}};
  if (!kernel.caution.empty())
    object["caution"] = kernel.caution;
  if (kernel.threads == 0) {
    object["scratch"] = kernel.scratch;
  } else {
    object["shared"] = kernel.scratch;
    object["threads"] = kernel.threads;
    if (kernel.overlaps)
      object["overlaps"] = true;
    if (kernel.persistent)
      object["persistent"] = true;
  }
  if (!kernel.maps.empty()) {
    json::Array maps;
    for (const PlanTensorMap &map : kernel.maps)
      maps.push_back(json::Object{{"view", map.view},
                                  {"type", map.type},
                                  {"box", json::Array(map.box)}});
    object["maps"] = std::move(maps);
  }
  return object;
}

static json::Value bufferToJSON(const PlanBuffer &buffer) {
  json::Object object{{"name", buffer.name},
                      {"kind", stringifyBufferKind(buffer.kind)},
                      {"type", stringifyElementType(buffer.type)},
                      {"sizes", exprsToJSON(buffer.sizes)}};
  if (!buffer.path.empty())
    object["path"] = buffer.path;
  if (buffer.kind == BufferKind::Arena) {
    object["first"] = buffer.first;
    object["last"] = buffer.last;
    if (buffer.pieces)
      object["pieces"] = *buffer.pieces;
  }
  if (buffer.kind == BufferKind::Constant) {
    json::Array data;
    if (isa<FloatType>(buffer.type))
      for (float value : buffer.data.getValues<float>())
        data.push_back(value);
    else
      for (int32_t value : buffer.data.getValues<int32_t>())
        data.push_back(value);
    object["data"] = std::move(data);
  }
  return object;
}

static json::Value productToJSON(const PlanProduct &product) {
  json::Object object{{"a", product.a}, {"b", product.b}, {"c", product.c}};
  for (auto [key, holds] : {std::pair{"transpose_a", product.transposeA},
                            {"transpose_b", product.transposeB},
                            {"accumulate", product.accumulate},
                            {"parts", product.parts}})
    if (holds)
      object[key] = true;
  return object;
}

static json::Value launchToJSON(const PlanLaunch &launch) {
  json::Array alternatives;
  for (const PlanAlternative &alternative : launch.alternatives) {
    json::Array views;
    for (const PlanView &view : alternative.views)
      views.push_back(
          json::Object{{"buffer", view.buffer},
                       {"offset", exprToJSON(view.layout.offset)},
                       {"sizes", exprsToJSON(view.layout.sizes)},
                       {"strides", exprsToJSON(view.layout.strides)}});
    json::Object object{{"guard", guardToJSON(alternative.guard)},
                        {"kernel", alternative.kernel},
                        {"views", std::move(views)}};
    if (alternative.product)
      object["product"] = productToJSON(*alternative.product);
    alternatives.push_back(std::move(object));
  }
  return json::Object{{"layer", launch.layer},
                      {"op", launch.op},
                      {"alternatives", std::move(alternatives)}};
}

static json::Array piecesToJSON(ArrayRef<PlanPieces> pieces) {
  json::Array array;
  for (const PlanPieces &group : pieces)
    array.push_back(json::Object{
        {"rows", group.rows}, {"first", group.first}, {"last", group.last}});
  return array;
}

json::Value hybrid::planToJSON(const Plan &plan) {
  json::Array kernels;
  for (const PlanKernel &kernel : plan.kernels)
    kernels.push_back(kernelToJSON(kernel));
  json::Object entries;
  for (const PlanEntry &entry : plan.entries) {
    json::Array buffers, launches;
    for (const PlanBuffer &buffer : entry.buffers)
      buffers.push_back(bufferToJSON(buffer));
    for (const PlanLaunch &launch : entry.launches)
      launches.push_back(launchToJSON(launch));
    json::Object object{{"buffers", std::move(buffers)},
                        {"launches", std::move(launches)}};
    if (!entry.pieces.empty())
      object["pieces"] = piecesToJSON(entry.pieces);
    entries[entry.name] = std::move(object);
  }
  return json::Object{{"kernels", std::move(kernels)},
                      {"entries", std::move(entries)}};
}
