//===- Model.cpp ---------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Model.h"

#include "core/ArenaLayout.h"
#include "core/HbxFormat.h"
#include "io/Safetensors.h"
#include "train/Initialise.h"

#include <algorithm>
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
  if (!model->program->productNote().empty())
    runtime.log(HYB_LOG_INFO, "%s", model->program->productNote().c_str());
  runtime.log(HYB_LOG_INFO, "%s: %lld parameters, code for %s, %s",
              model->meta().name.c_str(),
              static_cast<long long>(model->parameterTable().scalars()),
              model->codeName().c_str(), model->place->description().c_str());
  return model;
}

Status Model::allocate() {
  mastersHeld = computeType() == ElementType::F32;
  if (mastersHeld) {
    HYB_ASSIGN(weights, place->allocate(flatBytes()));
  } else {
    HYB_ASSIGN(copies, place->allocate(tables.parameters.elements *
                                       elementBytes(computeType())));
    std::set<std::string> paths = tables.plan.wideParameters();
    constexpr auto kElements =
        static_cast<int64_t>(kArenaAlignment) / kElementBytes;
    int64_t elements = 0;
    for (const ParameterInfo &info : tables.parameters.parameters) {
      bool isWide = paths.count(info.path) != 0;
      wideOffsets.push_back(isWide ? elements : -1);
      if (isWide)
        elements += (info.elements + kElements - 1) / kElements * kElements;
    }
    HYB_ASSIGN(wide, place->allocate(elements * kElementBytes));
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

/// That the file has these parameters under `prefix` and nothing else.
Status checkParameters(const SafetensorsView &view, const ParameterTable &table,
                       const std::string &prefix) {
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
  return Status();
}

/// The tensor's numbers in f32. Tensors of a file need not be aligned.
void widen(const SafetensorsView &view, const TensorEntry &entry,
           int64_t elements, float *target) {
  const auto *source =
      reinterpret_cast<const unsigned char *>(view.data(entry).data);
  if (entry.type == DType::F32) {
    std::memcpy(target, source, static_cast<size_t>(elements) * sizeof(float));
    return;
  }
  bool isBrain = entry.type == DType::BF16;
  for (int64_t i = 0; i < elements; ++i) {
    uint16_t bits;
    std::memcpy(&bits, source + 2 * i, 2);
    target[i] = isBrain ? bf16ToFloat(bits) : f16ToFloat(bits);
  }
}

} // namespace

Status copyParameters(const SafetensorsView &view, const ParameterTable &table,
                      const std::string &prefix, Device &device, void *target) {
  HYB_TRY(checkParameters(view, table, prefix));
  for (const ParameterInfo &info : table.parameters) {
    const TensorEntry &entry = *view.find(prefix + info.path);
    Memory wide;
    const void *source = view.data(entry).data;
    if (entry.type != DType::F32) {
      HYB_ASSIGN(wide, Memory::allocate(info.elements * kElementBytes));
      widen(view, entry, info.elements, wide.floats());
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
  if (!holdsMasters()) {
    HYB_TRY(checkParameters(file.view, tables.parameters, "").within(path));
    HYB_TRY(fillCopies([&](const ParameterInfo &info, float *values) {
              widen(file.view, *file.view.find(info.path), info.elements,
                    values);
            }).within(path));
    loaded = std::make_unique<SafetensorsFile>(std::move(file));
    drawn = Memory();
    return Status();
  }
  parametersChanged();
  return copyParameters(file.view, tables.parameters, "", *place,
                        weights.data())
      .within(path);
}

/// Rounds a parameter at a time, so that nothing holds all of them in f32.
Status Model::fillCopies(
    const std::function<void(const ParameterInfo &, float *)> &valuesOf) {
  bool isBrain = computeType() == ElementType::BF16;
  // Before anything is written: without memory all stays as it is.
  int64_t most = 0;
  for (const ParameterInfo &info : tables.parameters.parameters)
    most = std::max(most, info.elements);
  HYB_ASSIGN(Memory values, Memory::allocate(most * kElementBytes));
  for (size_t n = 0; n < wideOffsets.size(); ++n) {
    const ParameterInfo &info = tables.parameters.parameters[n];
    valuesOf(info, values.floats());
    if (wideOffsets[n] >= 0)
      HYB_TRY(place->write(static_cast<float *>(wide.data()) + wideOffsets[n],
                           values.data(), info.elements * kElementBytes));
    // In place: a number is read before its half of the memory is written.
    auto *narrow = static_cast<uint16_t *>(values.data());
    for (int64_t i = 0; i < info.elements; ++i) {
      float value;
      std::memcpy(&value, static_cast<char *>(values.data()) + 4 * i, 4);
      uint16_t bits = isBrain ? floatToBf16(value) : floatToF16(value);
      std::memcpy(narrow + i, &bits, 2);
    }
    HYB_TRY(place->write(static_cast<uint16_t *>(copies.data()) + info.offset,
                         narrow, info.elements * 2));
  }
  return Status();
}

void Model::readSource(const ParameterInfo &info, float *target) const {
  if (loaded)
    widen(loaded->view, *loaded->view.find(info.path), info.elements, target);
  else if (drawn.data())
    std::copy_n(drawn.floats() + info.offset, info.elements, target);
  else
    std::fill_n(target, info.elements, 0.0f);
}

Status Model::needMasters() {
  // A callback that watches the copies being made holds the lock already.
  if (mastersHeld)
    return Status();
  std::unique_lock<std::mutex> lock = lockCopies();
  if (mastersHeld)
    return Status();
  HYB_ASSIGN(DeviceMemory all, place->allocate(flatBytes()));
  if (loaded)
    HYB_TRY(copyParameters(loaded->view, tables.parameters, "", *place,
                           all.data()));
  else if (drawn.data())
    HYB_TRY(place->write(all.data(), drawn.data(), flatBytes()));
  weights = std::move(all);
  loaded.reset();
  drawn = Memory();
  // `wide` stays: another context may be in a call that reads it.
  mastersHeld = true;
  return Status();
}

Result<HostView> Model::parametersOnHost() const {
  if (holdsMasters())
    return HostView::of(*place, parameters(), flatBytes());
  // Masters may be made meanwhile, which closes the file.
  std::unique_lock<std::mutex> lock(copyMutex);
  if (holdsMasters())
    return HostView::of(*place, parameters(), flatBytes());
  HYB_ASSIGN(Memory all, Memory::allocate(flatBytes()));
  for (const ParameterInfo &info : tables.parameters.parameters)
    readSource(info, all.floats() + info.offset);
  return HostView::holding(std::move(all));
}

Status Model::saveWeights(const std::string &path,
                          std::map<std::string, std::string> metadata) const {
  HYB_ASSIGN(HostView host, parametersOnHost());
  std::vector<TensorToWrite> tensors;
  for (const ParameterInfo &info : tables.parameters.parameters)
    tensors.push_back({info.path, DType::F32, unsignedShape(info),
                       host.floats() + info.offset});
  metadata["format"] = "hybridc";
  metadata["model"] = meta().name;
  return writeSafetensors(path, tensors, metadata);
}

Status Model::initialise(uint64_t seed) {
  if (holdsMasters()) {
    parametersChanged();
    return place->write(parameters(), flatBytes(),
                        [&](void *piece, int64_t begin, int64_t bytes) {
                          initialiseRange(
                              tables.parameters, seed, begin / kElementBytes,
                              bytes / kElementBytes,
                              static_cast<float *>(piece), &owner->threads());
                        });
  }
  HYB_ASSIGN(Memory host, Memory::allocate(flatBytes()));
  initialiseParameters(tables.parameters, seed, host.floats(),
                       &owner->threads());
  HYB_TRY(fillCopies([&](const ParameterInfo &info, float *values) {
    std::copy_n(host.floats() + info.offset, info.elements, values);
  }));
  drawn = std::move(host);
  loaded.reset();
  return Status();
}

Status Model::readParameter(const ParameterInfo &info, float *target) const {
  if (!holdsMasters()) {
    std::unique_lock<std::mutex> lock(copyMutex);
    if (!holdsMasters()) {
      readSource(info, target);
      return Status();
    }
  }
  return place->read(target, parameter(info), info.elements * kElementBytes);
}

Status Model::writeParameter(const ParameterInfo &info, const float *source) {
  HYB_TRY(needMasters());
  parametersChanged();
  return place->write(parameter(info), source, info.elements * kElementBytes);
}

Status Model::checkFinite() const {
  HYB_ASSIGN(HostView host, parametersOnHost());
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
