//===- Assemble.cpp - the sections of an artefact -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Artefact/Assemble.h"

#include "hybrid/Graph/ParameterLayout.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace hybrid;
namespace json = llvm::json;

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

/// `normal(0.02)` as kind and numbers.
static llvm::Expected<json::Value> initToJSON(const ParameterRow &parameter) {
  auto bad = [&] {
    return llvm::createStringError("init '%s' of parameter '%s' is not of the "
                                   "form name or name(number, ...)",
                                   parameter.init.c_str(),
                                   parameter.path.c_str());
  };
  auto [kind, rest] = StringRef(parameter.init).split('(');
  json::Array values;
  if (!rest.empty()) {
    if (!rest.consume_back(")"))
      return bad();
    SmallVector<StringRef> numbers;
    rest.split(numbers, ',');
    for (StringRef number : numbers) {
      double value;
      if (number.trim().getAsDouble(value))
        return bad();
      values.push_back(value);
    }
  }
  return json::Object{{"kind", kind.trim()}, {"values", std::move(values)}};
}

static llvm::Expected<json::Value> parametersToJSON(const ModelTables &tables) {
  ParameterLayout layout(tables.params);
  json::Array rows;
  for (const ParameterLayout::Row &row : layout.rows) {
    llvm::Expected<json::Value> init = initToJSON(*row.parameter);
    if (!init)
      return init.takeError();
    rows.push_back(json::Object{{"path", row.parameter->path},
                                {"shape", json::Array(row.parameter->shape)},
                                {"offset", row.offset},
                                {"decay", row.parameter->decay},
                                {"init", std::move(*init)}});
  }
  return json::Object{{"elements", layout.elements},
                      {"decay_elements", layout.decayElements},
                      {"parameters", std::move(rows)}};
}

//===----------------------------------------------------------------------===//
// States and meta
//===----------------------------------------------------------------------===//

static json::Value statesToJSON(const ModelTables &tables) {
  json::Array rows;
  for (const StateRow &state : tables.states) {
    json::Array sizes;
    for (AffineExpr size : Layout::contiguous(state.type).sizes)
      sizes.push_back(exprToJSON(size));
    rows.push_back(json::Object{
        {"path", state.path},
        {"kind", state.kind},
        {"type", stringifyElementType(state.type.getElementType())},
        {"sizes", std::move(sizes)}});
  }
  return json::Object{{"states", std::move(rows)}};
}

/// Layers are counted by the paths of their parameters: the container does not
/// know the stack.
static int64_t countLayers(const ModelTables &tables) {
  int64_t layers = 0;
  for (const ParameterRow &parameter : tables.params) {
    StringRef path = parameter.path;
    int64_t layer;
    if (path.consume_front("layers.") && !path.consumeInteger(10, layer))
      layers = std::max(layers, layer + 1);
  }
  return layers;
}

static json::Value metaToJSON(StringRef spec, const ModelTables &tables,
                              ArrayRef<ArtefactTarget> targets) {
  json::Array names, levels;
  for (const ArtefactTarget &target : targets) {
    names.push_back(target.name);
    for (const ArtefactSection &section : target.code)
      if (section.kind == "code")
        levels.push_back(section.name);
  }
  int64_t width = 0;
  for (const ParameterRow &parameter : tables.params)
    if (parameter.path == "embed.weight" && parameter.shape.size() == 2)
      width = parameter.shape[1];
  return json::Object{{"model", tables.meta.name},
                      {"spec", spec},
                      {"vocab", tables.meta.vocab},
                      {"width", width},
                      {"layers", countLayers(tables)},
                      {"trained_length", tables.meta.trainedLength},
                      {"toolchain", toolchainName()},
                      {"targets", std::move(names)},
                      {"levels", std::move(levels)}};
}

//===----------------------------------------------------------------------===//
// Artefact
//===----------------------------------------------------------------------===//

llvm::StringRef hybrid::toolchainName() {
  return "hybridc " HYBRID_VERSION ", LLVM " LLVM_VERSION_STRING;
}

llvm::Expected<std::string>
hybrid::assembleArtefact(StringRef spec, const ModelTables &tables,
                         ArrayRef<ArtefactTarget> targets) {
  llvm::Expected<json::Value> parameters = parametersToJSON(tables);
  if (!parameters)
    return parameters.takeError();
  auto text = [](const json::Value &value) {
    return llvm::formatv("{0}", value).str();
  };
  std::vector<ArtefactSection> sections = {
      {"meta", "", text(metaToJSON(spec, tables, targets))},
      {"params", "", text(*parameters)},
      {"states", "", text(statesToJSON(tables))},
  };
  for (const ArtefactTarget &target : targets) {
    sections.push_back(
        {"plan", target.planName().str(), text(planToJSON(target.plan))});
    llvm::append_range(sections, target.code);
  }
  return serialiseArtefact(sections);
}
