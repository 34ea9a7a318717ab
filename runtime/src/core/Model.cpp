//===- Model.cpp ---------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Model.h"

#include "core/HbxFormat.h"
#include "io/Safetensors.h"

#include <cmath>
#include <cstring>

namespace hyb::rt {

Result<ArtefactTables> ArtefactTables::read(const HbxReader &artefact) {
  ArtefactTables tables;
  HYB_ASSIGN(Bytes meta, artefact.get("meta"));
  HYB_ASSIGN(tables.meta, ModelMeta::parse(meta));
  HYB_ASSIGN(Bytes parameters, artefact.get("params"));
  HYB_ASSIGN(tables.parameters, ParameterTable::parse(parameters));
  HYB_ASSIGN(Bytes states, artefact.get("states"));
  HYB_ASSIGN(tables.states, StateTable::parse(states));
  HYB_ASSIGN(Bytes plan, artefact.get("plan", "cpu"));
  HYB_ASSIGN(tables.plan, Plan::parse(plan));
  return tables;
}

Status Model::chooseLevel(const HbxReader &artefact) {
  std::string held;
  std::optional<CpuLevel> best;
  std::optional<CpuLevel> host = hostCpuLevel();
  for (CpuLevel level : kCpuLevels) {
    if (!artefact.find("code", cpuLevelName(level)))
      continue;
    held += (held.empty() ? "" : ", ") + std::string(cpuLevelName(level));
    if (host && level <= *host)
      best = level;
  }
  const char *hostName = host ? cpuLevelName(*host) : "not x86-64";
  std::optional<CpuLevel> forced = owner->forcedLevel();
  if (forced && (!host || *forced > *host))
    return failure(HYB_UNSUPPORTED,
                   "processor level %s was asked for, this processor is %s; "
                   "ask for a lower level or for none",
                   cpuLevelName(*forced), hostName);
  if (forced && !artefact.find("code", cpuLevelName(*forced)))
    return failure(HYB_UNSUPPORTED,
                   "processor level %s was asked for, the artefact holds code "
                   "for %s; compile the spec with that level",
                   cpuLevelName(*forced), held.empty() ? "none" : held.c_str());
  if (!forced && !best)
    return failure(HYB_UNSUPPORTED,
                   "artefact holds code for %s, this processor is %s; compile "
                   "the spec for this processor",
                   held.empty() ? "no processor" : held.c_str(), hostName);
  codeLevel = forced ? *forced : *best;
  return Status();
}

Status Model::resolveKernels() {
  for (const PlanKernel &kernel : tables.plan.kernels) {
    const void *address = code.function(kernel.symbol);
    if (!address)
      return failure(HYB_INVALID_FILE,
                     "code for %s has no kernel '%.64s' (%.64s); compile the "
                     "spec again",
                     cpuLevelName(codeLevel), kernel.symbol.c_str(),
                     kernel.name.c_str());
    kernels.push_back(
        reinterpret_cast<Kernel>(reinterpret_cast<uintptr_t>(address)));
  }
  return Status();
}

Result<std::unique_ptr<Model>> Model::open(Runtime &runtime, Bytes bytes) {
  HYB_ASSIGN(HbxReader artefact, HbxReader::parse(bytes));
  auto model = std::make_unique<Model>();
  model->owner = &runtime;
  HYB_ASSIGN(model->tables, ArtefactTables::read(artefact));
  HYB_TRY(model->chooseLevel(artefact));
  HYB_ASSIGN(Bytes code, artefact.get("code", cpuLevelName(model->codeLevel)));
  HYB_ASSIGN(model->code, CodeImage::load(code));
  HYB_TRY(model->resolveKernels());
  HYB_ASSIGN(Bytes states, artefact.get("states"));
  model->tableHash = hbxChecksum(states.data, states.size);
  HYB_ASSIGN(
      model->weights,
      Memory::allocate(model->tables.parameters.elements * kElementBytes));
  runtime.log(HYB_LOG_INFO, "%s: %lld parameters, code for %s, %d threads",
              model->meta().name.c_str(),
              static_cast<long long>(model->parameterTable().scalars()),
              cpuLevelName(model->codeLevel), runtime.threads().size());
  return model;
}

Result<std::unique_ptr<Model>> Model::open(Runtime &runtime,
                                           const std::string &path) {
  HYB_ASSIGN(MappedFile file, MappedFile::open(path));
  Result<std::unique_ptr<Model>> model = open(runtime, file.bytes());
  if (!model.ok())
    return model.status().within(path);
  return model;
}

Result<const PlanEntry *> Model::entry(const std::string &name) const {
  auto it = tables.plan.entries.find(name);
  if (it == tables.plan.entries.end())
    return failure(HYB_UNSUPPORTED,
                   "artefact has no entry '%s'; compile the spec with it",
                   name.c_str());
  return &it->second;
}

namespace {

std::vector<uint64_t> unsignedShape(const ParameterInfo &info) {
  return {info.shape.begin(), info.shape.end()};
}

Status checkParameter(const SafetensorsView &view, const ParameterInfo &info,
                      const std::string &name) {
  const TensorEntry *entry = view.find(name);
  if (!entry)
    return failure(HYB_MISMATCH,
                   "%s is missing; the weights are for another spec",
                   name.c_str());
  if (entry->type != DType::F32)
    return failure(HYB_MISMATCH, "%s has dtype %s, expected F32; convert it",
                   name.c_str(), dtypeName(entry->type));
  if (entry->shape != unsignedShape(info))
    return failure(HYB_MISMATCH,
                   "%s has shape %s, the spec has %s; the weights are for "
                   "another spec",
                   name.c_str(), shapeText(entry->shape).c_str(),
                   shapeText(unsignedShape(info)).c_str());
  return Status();
}

} // namespace

Status copyParameters(const SafetensorsView &view, const ParameterTable &table,
                      const std::string &prefix, float *target) {
  for (const ParameterInfo &info : table.parameters)
    HYB_TRY(checkParameter(view, info, prefix + info.path));
  for (const TensorEntry &entry : view.tensors())
    if (entry.name.compare(0, prefix.size(), prefix) == 0 &&
        !table.find(entry.name.substr(prefix.size())) &&
        // Without a prefix, names with a colon are of other kinds: moments.
        (!prefix.empty() || entry.name.find(':') == std::string::npos))
      return failure(HYB_MISMATCH,
                     "%s is not a parameter of the spec; the weights are for "
                     "another spec",
                     entry.name.c_str());
  for (const ParameterInfo &info : table.parameters) {
    Bytes data = view.data(*view.find(prefix + info.path));
    std::memcpy(target + info.offset, data.data, data.size);
  }
  return Status();
}

Status Model::loadWeights(const std::string &path) {
  HYB_ASSIGN(SafetensorsFile file, SafetensorsFile::open(path));
  return copyParameters(file.view, tables.parameters, "", weights.floats())
      .within(path);
}

Status Model::saveWeights(const std::string &path) const {
  std::vector<TensorToWrite> tensors;
  for (const ParameterInfo &info : tables.parameters.parameters)
    tensors.push_back(
        {info.path, DType::F32, unsignedShape(info), parameter(info)});
  return writeSafetensors(path, tensors,
                          {{"format", "hybridc"}, {"model", meta().name}});
}

Status Model::checkFinite() const {
  for (const ParameterInfo &info : tables.parameters.parameters)
    for (int64_t i = 0; i < info.elements; ++i)
      if (!std::isfinite(parameter(info)[i]))
        return failure(HYB_MISMATCH,
                       "%s holds %g at element %lld; the weights are damaged "
                       "or training diverged",
                       info.path.c_str(),
                       static_cast<double>(parameter(info)[i]),
                       static_cast<long long>(i));
  return Status();
}

} // namespace hyb::rt
