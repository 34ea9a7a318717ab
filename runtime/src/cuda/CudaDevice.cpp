//===- CudaDevice.cpp ----------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cuda/CudaDevice.h"

#include "cuda/CublasLt.h"
#include "cuda/CudaProgram.h"
#include "cuda/CudaQueue.h"
#include "cuda/Transfers.h"

#include <cstring>

namespace hyb::rt {

using namespace cuda;

Result<std::unique_ptr<Device>>
CudaDevice::open(int ordinal, bool useCurrentContext, ProductChoice products) {
  auto device = std::make_unique<CudaDevice>();
  device->choice = products;
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
  HYB_ASSIGN(std::unique_ptr<Program> program,
             CudaProgram::load(context, artefact, planName, plan));
  HYB_TRY(giveProducts(*program, plan));
  return program;
}

/// Whether a library may compute some product of a plan.
static bool hasProducts(const Plan &plan, ProductChoice choice) {
  auto mayCompute = [&](const PlanEntry &entry, uint32_t launch, uint32_t n) {
    const auto &product = entry.launches[launch].alternatives[n].product;
    if (!product)
      return false;
    const PlanAlternative &factors = entry.factorsOf(launch, n);
    return CublasLtProducts::mayCompute(
        plan.kernels[factors.kernel],
        entry.buffers[factors.views[product->a].buffer].type, choice);
  };
  for (const auto &[name, entry] : plan.entries)
    for (uint32_t i = 0; i < entry.launches.size(); ++i)
      for (uint32_t n = 0; n < entry.launches[i].alternatives.size(); ++n)
        if (mayCompute(entry, i, n))
          return true;
  return false;
}

Status CudaDevice::giveProducts(Program &program, const Plan &plan) {
  if (choice == ProductChoice::Compiled)
    return Status();
  if (!hasProducts(plan, choice)) {
    if (choice == ProductChoice::Library)
      return failure(HYB_UNSUPPORTED,
                     "products=cublaslt, but the plan marks no product; "
                     "compile the spec again, or use products=compiled");
    program.setProducts(nullptr,
                        hasProducts(plan, ProductChoice::Library)
                            ? "products: compiled, they are f32 or of kernels "
                              "for this GPU"
                            : "products: compiled, the plan marks none");
    return Status();
  }
  std::lock_guard<std::mutex> lock(libraryTurn);
  if (!library) {
    auto opened = CublasLt::open(context);
    if (!opened.ok() && choice == ProductChoice::Library)
      return opened.status();
    if (!opened.ok()) {
      program.setProducts(nullptr,
                          "products: compiled, " + opened.status().message());
      return Status();
    }
    library = *opened;
  }
  program.setProducts(std::make_shared<CublasLtProducts>(library, choice),
                      "products: " + library->title());
  return Status();
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
  return write(target, bytes, [&](void *piece, int64_t begin, int64_t size) {
    std::memcpy(piece, static_cast<const char *>(source) + begin,
                static_cast<size_t>(size));
  });
}

Status CudaDevice::write(void *target, int64_t bytes,
                         const PieceSource &source) {
  return transfers->toDevice(target, bytes, source);
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
