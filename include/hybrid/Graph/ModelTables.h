//===- ModelTables.h - parameters and states of a model -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tables that hybrid-build-graph writes on the module and that gradients,
// the artefact and the report read: `hybrid.meta`, `hybrid.params` and
// `hybrid.states`.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_GRAPH_MODELTABLES_H
#define HYBRID_GRAPH_MODELTABLES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"

namespace hybrid {

/// What the model is called and bounded by.
struct ModelMeta {
  std::string name;
  int64_t vocab;
  int64_t trainedLength; // 0 when the spec states none
  mlir::Type computeType;
};

/// One parameter; f32, and its copy of the compute type.
struct ParameterRow {
  std::string path; // layers.3.mixer.q_proj.weight
  llvm::SmallVector<int64_t> shape;
  std::string init; // normal(0.02), ones, zeros, constant(x), ...
  bool decay;       // whether weight decay applies
};

/// One state of a slot, zero at first.
struct StateRow {
  std::string path;            // layers.3.mixer.k_cache
  std::string kind;            // kv, recurrent or conv
  mlir::RankedTensorType type; // with the slots in front
};

struct ModelTables {
  ModelMeta meta;
  std::vector<ParameterRow> params;
  std::vector<StateRow> states;
};

void setModelTables(mlir::ModuleOp module, const ModelTables &tables);

/// Reads the tables back; an error on the module when they are not there.
mlir::FailureOr<ModelTables> getModelTables(mlir::ModuleOp module);

} // namespace hybrid

#endif // HYBRID_GRAPH_MODELTABLES_H
