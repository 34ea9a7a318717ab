//===- Model.h - A loaded artefact ------------------------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CORE_MODEL_H
#define HYBRID_RUNTIME_CORE_MODEL_H

#include "core/Memory.h"
#include "core/PlanInstance.h"
#include "core/Runtime.h"
#include "cpu/CodeImage.h"
#include "io/HbxReader.h"

namespace hyb::rt {

/// What an artefact says, without its code: all that `info` needs. Reading it
/// runs nothing of the artefact.
struct ArtefactTables {
  ModelMeta meta;
  ParameterTable parameters;
  StateTable states;
  Plan plan;

  static Result<ArtefactTables> read(const HbxReader &artefact);
};

class Model {
public:
  static Result<std::unique_ptr<Model>> open(Runtime &runtime, Bytes artefact);
  static Result<std::unique_ptr<Model>> open(Runtime &runtime,
                                             const std::string &path);

  Runtime &runtime() const { return *owner; }
  const ModelMeta &meta() const { return tables.meta; }
  const ParameterTable &parameterTable() const { return tables.parameters; }
  const StateTable &stateTable() const { return tables.states; }
  CpuLevel level() const { return codeLevel; }
  /// Of the tables that a saved state depends on.
  uint64_t fingerprint() const { return tableHash; }
  ModelTables planTables() const {
    return {tables.plan, tables.meta, tables.parameters, tables.states,
            kernels};
  }
  /// The entry point, or an error that says that the spec has none.
  Result<const PlanEntry *> entry(const std::string &name) const;

  float *parameters() const { return weights.floats(); }
  float *parameter(const ParameterInfo &info) const {
    return weights.floats() + info.offset;
  }

  Status loadWeights(const std::string &path);
  Status saveWeights(const std::string &path) const;
  Status checkFinite() const;

private:
  Status chooseLevel(const HbxReader &artefact);
  Status resolveKernels();

  Runtime *owner = nullptr;
  ArtefactTables tables;
  CodeImage code;
  CpuLevel codeLevel = CpuLevel::X86_64;
  std::vector<Kernel> kernels;
  uint64_t tableHash = 0;
  Memory weights;
};

/// Checks that `view` holds exactly the parameters of `table`, as F32 with
/// their shapes, under `prefix` + path; then copies them to `target`, which is
/// laid out by the table.
Status copyParameters(const class SafetensorsView &view,
                      const ParameterTable &table, const std::string &prefix,
                      float *target);

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CORE_MODEL_H
