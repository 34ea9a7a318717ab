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
#include "io/HbxReader.h"
#include "io/Safetensors.h"

#include <atomic>
#include <functional>
#include <map>
#include <mutex>

namespace hyb::rt {

/// Of the folder of a training run: its weights, moments and settings.
inline constexpr const char *kCheckpointFile = "checkpoint.safetensors";

/// The weight file for a path: the file itself, or in a folder its checkpoint.
std::string weightFile(const std::string &path);

/// What an artefact says, without its code: all that `info` needs. Reading it
/// runs nothing of the artefact.
struct ArtefactTables {
  ModelMeta meta;
  ParameterTable parameters;
  StateTable states;
  Plan plan;

  /// With the plan of that name; empty: the first there is.
  static Result<ArtefactTables> read(const HbxReader &artefact,
                                     const std::string &planName = "");
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
  ElementType computeType() const { return tables.plan.computeType(); }
  Device &device() const { return *place; }
  /// "x86-64-v3", "sm_90a"
  const std::string &codeName() const { return program->codeName(); }
  /// Who computes products, when somebody was asked for; else empty.
  const std::string &productNote() const { return program->productNote(); }
  /// Of the tables that a saved state depends on.
  uint64_t fingerprint() const { return tableHash; }
  ModelTables planTables() const { return planTables(holdsMasters()); }
  /// For calls that take f32 parameters from `boundParameters(masters)`.
  ModelTables planTables(bool masters) const {
    return {tables.plan,        tables.meta,
            tables.parameters,  tables.states,
            program->kernels(), masters ? nullptr : &wideOffsets,
            program->products()};
  }
  /// The entry point, or an error that says that the spec has none.
  Result<const PlanEntry *> entry(const std::string &name) const;

  /// Whether all parameters are held in f32. A model that computes in a
  /// narrower type begins with copies of that type, which weights are loaded
  /// or drawn into, and those few parameters that calls read in f32.
  bool holdsMasters() const { return mastersHeld; }
  /// Makes them, from the weights that were loaded or drawn: for an optimiser,
  /// and for whoever changes parameters or looks at their memory.
  Status needMasters();
  /// What entries read f32 parameters from, by what the model held when they
  /// were planned: another thread may make masters meanwhile.
  void *boundParameters(bool masters) const {
    return masters ? weights.data() : wide.data();
  }
  /// Of all parameters and copies that are held now.
  int64_t parameterBytes() const {
    return weights.bytes() + copies.bytes() + wide.bytes();
  }

  /// In the device's memory: the host may use the address where it is one. Null
  /// without masters.
  float *parameters() const { return static_cast<float *>(weights.data()); }
  float *parameter(const ParameterInfo &info) const {
    return parameters() + info.offset;
  }
  const DeviceMemory &parameterMemory() const { return weights; }

  /// The parameters in the type that entries compute in, with the same offsets;
  /// null where that is f32.
  void *parameterCopies() const { return copies.data(); }
  /// Held while copies are looked at and made again.
  std::unique_lock<std::mutex> lockCopies() {
    return std::unique_lock<std::mutex>(copyMutex);
  }
  bool copiesAreStale() const { return stale || shared; }
  void copiesAreFresh() { stale = false; }
  /// After a change of the parameters that did not change the copies.
  void parametersChanged() { stale = true; }
  /// Somebody else may change the parameters from now on, at any time.
  void parametersAreShared() { shared = true; }

  void *constants() const { return constantMemory.data(); }
  int64_t flatBytes() const {
    return tables.parameters.elements * kElementBytes;
  }

  /// Fills the parameters with the spec's distributions.
  Status initialise(uint64_t seed);
  /// The elements of one parameter, from and to memory of the host.
  Status readParameter(const ParameterInfo &info, float *target) const;
  Status writeParameter(const ParameterInfo &info, const float *source);
  /// From a weight file, or the folder of a training run.
  Status loadWeights(const std::string &path);
  Status saveWeights(const std::string &path,
                     std::map<std::string, std::string> metadata = {}) const;
  Status checkFinite() const;

private:
  Status allocate();
  /// What copies were made from: a parameter's numbers in f32.
  void readSource(const ParameterInfo &info, float *target) const;
  Status fillCopies(
      const std::function<void(const ParameterInfo &, float *)> &valuesOf);
  Result<HostView> parametersOnHost() const;

  Runtime *owner = nullptr;
  Device *place = nullptr;
  ArtefactTables tables;
  std::unique_ptr<Program> program;
  uint64_t tableHash = 0;
  DeviceMemory weights, copies, wide, constantMemory;
  /// By index in the parameter table: where one is in `wide`, in elements.
  std::vector<int64_t> wideOffsets;
  /// What copies were made from, until masters are: a file, or numbers that
  /// were drawn, on the host; at most one of them.
  std::unique_ptr<SafetensorsFile> loaded;
  Memory drawn;
  std::atomic<bool> mastersHeld = true;
  mutable std::mutex copyMutex;
  std::atomic<bool> stale = true, shared = false;
};

/// Checks that `view` holds exactly the parameters of `table`, as F32 with
/// their shapes, under `prefix` + path; then copies them to `target`, which is
/// laid out by the table and in the memory of `device`.
Status copyParameters(const SafetensorsView &view, const ParameterTable &table,
                      const std::string &prefix, Device &device, void *target);

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CORE_MODEL_H
