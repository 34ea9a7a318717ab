//===- CudaDevice.cpp ----------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cuda/CudaDevice.h"

#include "cuda/CudaProgram.h"
#include "cuda/CudaQueue.h"
#include "cuda/Transfers.h"

namespace hyb::rt {

using namespace cuda;

Result<std::unique_ptr<Device>> CudaDevice::open(int ordinal,
                                                 bool useCurrentContext) {
  auto device = std::make_unique<CudaDevice>();
  HYB_ASSIGN(device->context, CudaContext::open(ordinal, useCurrentContext));
  HYB_ASSIGN(device->transfers, Transfers::create(device->context));
  return std::unique_ptr<Device>(std::move(device));
}

CudaDevice::~CudaDevice() = default;

const char *CudaDevice::name() const { return context->name().c_str(); }

hyb_dl_device CudaDevice::dlDevice() const {
  return {HYB_DL_CUDA, context->ordinal()};
}

int64_t CudaDevice::peakBytes() const { return context->peakBytes(); }

std::string CudaDevice::description() const {
  int capability = context->capability();
  return context->name() + " (" + context->product() + ", compute capability " +
         std::to_string(capability / 10) + "." +
         std::to_string(capability % 10) + ")";
}

Result<std::string> CudaDevice::choosePlan(const HbxReader &artefact) const {
  return chooseChip(artefact, context->capability(),
                    context->name() + " (" + context->product() + ")");
}

Result<std::unique_ptr<Program>> CudaDevice::load(const HbxReader &artefact,
                                                  const std::string &planName,
                                                  const Plan &plan) {
  return CudaProgram::load(context, artefact, planName, plan);
}

Result<std::unique_ptr<Queue>>
CudaDevice::createQueue(const QueueOptions &options) {
  return CudaQueue::create(context, options);
}

Result<DeviceMemory> CudaDevice::allocate(int64_t bytes, Contents contents) {
  HYB_ASSIGN(DeviceMemory memory, context->allocate(bytes));
  if (contents == Contents::Zeros)
    HYB_TRY(transfers->clear(memory.data(), bytes));
  return memory;
}

Result<StagedMemory> CudaDevice::allocateStaged(int64_t bytes) {
  StagedMemory memory;
  HYB_ASSIGN(memory.host, context->allocatePinned(bytes));
  HYB_ASSIGN(memory.device, allocate(bytes));
  return memory;
}

Status CudaDevice::write(void *target, const void *source, int64_t bytes) {
  return transfers->toDevice(target, source, bytes);
}

Status CudaDevice::read(void *target, const void *source, int64_t bytes) const {
  return transfers->toHost(target, source, bytes);
}

Status CudaDevice::copy(void *target, const void *source, int64_t bytes) {
  return transfers->onDevice(target, source, bytes);
}

Status CudaDevice::clear(void *target, int64_t bytes) {
  return transfers->clear(target, bytes);
}

} // namespace hyb::rt
