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
#include "train/Initialise.h"

#include <cmath>
#include <cstring>
#include <filesystem>

namespace hyb::rt {

Result<ArtefactTables> ArtefactTables::read(const HbxReader &artefact,
                                            const std::string &planName) {
  ArtefactTables tables;
  HYB_ASSIGN(Bytes meta, artefact.get("meta"));
  HYB_ASSIGN(tables.meta, ModelMeta::parse(meta));
  HYB_ASSIGN(Bytes parameters, artefact.get("params"));
  HYB_ASSIGN(tables.parameters, ParameterTable::parse(parameters));
  HYB_ASSIGN(Bytes states, artefact.get("states"));
  HYB_ASSIGN(tables.states, StateTable::parse(states));
  std::string name = planName;
  for (const HbxReader::Section &section : artefact.sections())
    if (name.empty() && section.kind == "plan")
      name = section.name;
  HYB_ASSIGN(Bytes plan, artefact.get("plan", name.empty() ? "cpu" : name));
  HYB_ASSIGN(tables.plan, Plan::parse(plan));
  return tables;
}

Result<std::unique_ptr<Model>> Model::open(Runtime &runtime, Bytes bytes) {
  HYB_ASSIGN(HbxReader artefact, HbxReader::parse(bytes));
  auto model = std::make_unique<Model>();
  model->owner = &runtime;
  std::string reason;
  HYB_ASSIGN(model->place, runtime.devices().choose(artefact, &reason));
  HYB_ASSIGN(std::string planName, model->place->choosePlan(artefact));
  HYB_ASSIGN(model->tables, ArtefactTables::read(artefact, planName));
  HYB_ASSIGN(model->program,
             model->place->load(artefact, planName, model->tables.plan));
  HYB_ASSIGN(Bytes states, artefact.get("states"));
  model->tableHash = hbxChecksum(states.data, states.size);
  HYB_TRY(model->allocate());
  if (!reason.empty())
    runtime.log(HYB_LOG_INFO, "runs on the processor: %s", reason.c_str());
  runtime.log(HYB_LOG_INFO, "%s: %lld parameters, code for %s, %s",
              model->meta().name.c_str(),
              static_cast<long long>(model->parameterTable().scalars()),
              model->codeName().c_str(), model->place->description().c_str());
  return model;
}

Status Model::allocate() {
  HYB_ASSIGN(weights, place->allocate(flatBytes()));
  if (computeType() != ElementType::F32) {
    HYB_ASSIGN(copies, place->allocate(tables.parameters.elements *
                                       elementBytes(computeType())));
  }
  const std::vector<uint32_t> &constants = tables.plan.constants;
  int64_t bytes = static_cast<int64_t>(constants.size()) * kElementBytes;
  HYB_ASSIGN(constantMemory, place->allocate(bytes));
  return place->write(constantMemory.data(), constants.data(), bytes);
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
  if (entry->type != DType::F32 && entry->type != DType::BF16 &&
      entry->type != DType::F16)
    return failure(HYB_MISMATCH,
                   "%s has dtype %s, expected F32, BF16 or F16; convert it",
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
                      const std::string &prefix, Device &device, void *target) {
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
    const TensorEntry &entry = *view.find(prefix + info.path);
    Bytes data = view.data(entry);
    Memory wide;
    const void *source = data.data;
    if (entry.type != DType::F32) {
      HYB_ASSIGN(wide, Memory::allocate(info.elements * kElementBytes));
      bool isBrain = entry.type == DType::BF16;
      for (int64_t i = 0; i < info.elements; ++i) {
        uint16_t bits;
        std::memcpy(&bits, static_cast<const char *>(source) + 2 * i, 2);
        wide.floats()[i] = isBrain ? bf16ToFloat(bits) : f16ToFloat(bits);
      }
      source = wide.data();
    }
    HYB_TRY(device.write(static_cast<float *>(target) + info.offset, source,
                         info.elements * kElementBytes));
  }
  return Status();
}

std::string weightFile(const std::string &path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored)
             ? path + "/" + kCheckpointFile
             : path;
}

Status Model::loadWeights(const std::string &given) {
  std::string path = weightFile(given);
  HYB_ASSIGN(SafetensorsFile file, SafetensorsFile::open(path));
  parametersChanged();
  return copyParameters(file.view, tables.parameters, "", *place,
                        weights.data())
      .within(path);
}

Status Model::saveWeights(const std::string &path) const {
  HYB_ASSIGN(HostView host, HostView::of(*place, parameters(), flatBytes()));
  std::vector<TensorToWrite> tensors;
  for (const ParameterInfo &info : tables.parameters.parameters)
    tensors.push_back({info.path, DType::F32, unsignedShape(info),
                       host.floats() + info.offset});
  return writeSafetensors(path, tensors,
                          {{"format", "hybridc"}, {"model", meta().name}});
}

Status Model::initialise(uint64_t seed) {
  parametersChanged();
  if (place->isHost()) {
    initialiseParameters(tables.parameters, seed, parameters(),
                         &owner->threads());
    return Status();
  }
  HYB_ASSIGN(Memory host, Memory::allocate(flatBytes()));
  initialiseParameters(tables.parameters, seed, host.floats(),
                       &owner->threads());
  return place->write(parameters(), host.data(), flatBytes());
}

Status Model::readParameter(const ParameterInfo &info, float *target) const {
  return place->read(target, parameter(info), info.elements * kElementBytes);
}

Status Model::writeParameter(const ParameterInfo &info, const float *source) {
  parametersChanged();
  return place->write(parameter(info), source, info.elements * kElementBytes);
}

Status Model::checkFinite() const {
  HYB_ASSIGN(HostView host, HostView::of(*place, parameters(), flatBytes()));
  for (const ParameterInfo &info : tables.parameters.parameters)
    for (int64_t i = 0; i < info.elements; ++i)
      if (!std::isfinite(host.floats()[info.offset + i]))
        return failure(HYB_MISMATCH,
                       "%s holds %g at element %lld; the weights are damaged "
                       "or training diverged",
                       info.path.c_str(),
                       static_cast<double>(host.floats()[info.offset + i]),
                       static_cast<long long>(i));
  return Status();
}

} // namespace hyb::rt
