//===- ModelTables.cpp - parameters and states of a model -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Graph/ModelTables.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace hybrid;

void hybrid::setModelTables(ModuleOp module, const ModelTables &tables) {
  Builder builder(module.getContext());
  auto named = [&](StringRef name, Attribute value) {
    return builder.getNamedAttr(name, value);
  };
  auto text = [&](StringRef value) { return builder.getStringAttr(value); };

  SmallVector<NamedAttribute> meta = {
      named("name", text(tables.meta.name)),
      named("vocab", builder.getI64IntegerAttr(tables.meta.vocab)),
      named("trained_length",
            builder.getI64IntegerAttr(tables.meta.trainedLength))};
  if (!tables.meta.computeType.isF32())
    meta.push_back(named("dtype", TypeAttr::get(tables.meta.computeType)));
  module->setAttr("hybrid.meta", builder.getDictionaryAttr(meta));

  SmallVector<Attribute> params, states;
  for (const ParameterRow &row : tables.params)
    params.push_back(builder.getDictionaryAttr(
        {named("path", text(row.path)),
         named("shape", builder.getDenseI64ArrayAttr(row.shape)),
         named("init", text(row.init)),
         named("decay", builder.getBoolAttr(row.decay))}));
  for (const StateRow &row : tables.states)
    states.push_back(builder.getDictionaryAttr(
        {named("path", text(row.path)), named("kind", text(row.kind)),
         named("type", TypeAttr::get(row.type))}));
  module->setAttr("hybrid.params", builder.getArrayAttr(params));
  module->setAttr("hybrid.states", builder.getArrayAttr(states));
}

/// The attribute `key` of `row` as an AttrT, or null.
template <typename AttrT> static AttrT get(DictionaryAttr row, StringRef key) {
  return row ? row.getAs<AttrT>(key) : AttrT();
}

static FailureOr<ParameterRow> readParameter(Attribute attribute) {
  auto row = dyn_cast<DictionaryAttr>(attribute);
  auto path = get<StringAttr>(row, "path");
  auto shape = get<DenseI64ArrayAttr>(row, "shape");
  auto init = get<StringAttr>(row, "init");
  auto decay = get<BoolAttr>(row, "decay");
  if (!path || !shape || !init || !decay)
    return failure();
  return ParameterRow{path.str(), SmallVector<int64_t>(shape.asArrayRef()),
                      init.str(), decay.getValue()};
}

static FailureOr<StateRow> readState(Attribute attribute) {
  auto row = dyn_cast<DictionaryAttr>(attribute);
  auto path = get<StringAttr>(row, "path");
  auto kind = get<StringAttr>(row, "kind");
  auto type = get<TypeAttr>(row, "type");
  if (!path || !kind || !type || !isa<RankedTensorType>(type.getValue()))
    return failure();
  return StateRow{path.str(), kind.str(),
                  cast<RankedTensorType>(type.getValue())};
}

FailureOr<ModelTables> hybrid::getModelTables(ModuleOp module) {
  auto meta = module->getAttrOfType<DictionaryAttr>("hybrid.meta");
  auto params = module->getAttrOfType<ArrayAttr>("hybrid.params");
  auto states = module->getAttrOfType<ArrayAttr>("hybrid.states");
  auto name = get<StringAttr>(meta, "name");
  auto vocab = get<IntegerAttr>(meta, "vocab");
  auto trained = get<IntegerAttr>(meta, "trained_length");
  if (!params || !states || !name || !vocab || !trained)
    return module.emitError("lacks the tables hybrid.meta, hybrid.params or "
                            "hybrid.states; run hybrid-build-graph first");
  auto dtype = get<TypeAttr>(meta, "dtype");
  Type computeType =
      dtype ? dtype.getValue() : Float32Type::get(module.getContext());
  ModelTables tables{
      {name.str(), vocab.getInt(), trained.getInt(), computeType}, {}, {}};
  for (Attribute attribute : params) {
    FailureOr<ParameterRow> row = readParameter(attribute);
    if (failed(row))
      return module.emitError("has a row of hybrid.params without path, shape, "
                              "init or decay: ")
             << attribute;
    tables.params.push_back(std::move(*row));
  }
  for (Attribute attribute : states) {
    FailureOr<StateRow> row = readState(attribute);
    if (failed(row))
      return module.emitError(
                 "has a row of hybrid.states without path, kind or type: ")
             << attribute;
    tables.states.push_back(std::move(*row));
  }
  return tables;
}
