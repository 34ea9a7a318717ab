//===- CudaContext.cpp ---------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cuda/CudaContext.h"

#include <cinttypes>

namespace hyb::rt::cuda {

namespace {

/// Memory of the GPU, or memory of the host that was pinned.
struct CudaBlock : DeviceMemory::Block {
  /// `bytes` are those of the GPU.
  CudaBlock(std::shared_ptr<CudaContext> owner, void *address, bool pinned,
            int64_t bytes)
      : context(std::move(owner)), address(address), pinned(pinned),
        bytes(bytes) {
    context->countBytes(bytes);
  }
  ~CudaBlock() override {
    context->countBytes(-bytes);
    ContextScope scope(*context);
    if (pinned)
      context->driver().hostFree(address);
    else
      context->driver().free(pointerOf(address));
  }

  std::shared_ptr<CudaContext> context;
  void *address;
  bool pinned;
  int64_t bytes;
};

} // namespace

Result<std::shared_ptr<CudaContext>> CudaContext::open(int ordinal,
                                                       bool useCurrent) {
  auto result = std::make_shared<CudaContext>();
  HYB_ASSIGN(result->library, Driver::open());
  const Driver &driver = *result->library;
  result->shortName = "cuda:" + std::to_string(ordinal);
  int count = 0;
  HYB_TRY(result->check(driver.deviceCount(&count), "count GPUs"));
  if (ordinal >= count)
    return failure(HYB_UNSUPPORTED,
                   "%s does not exist, the driver sees %d GPU%s; give a "
                   "smaller number, or use --device=cpu",
                   result->shortName.c_str(), count, count == 1 ? "" : "s");
  HYB_TRY(result->check(driver.deviceGet(&result->device, ordinal),
                        "find the GPU"));
  if (useCurrent) {
    HYB_TRY(result->check(driver.contextCurrent(&result->context),
                          "read the current context"));
    if (!result->context)
      return failure(HYB_INVALID_ARGUMENT,
                     "no CUDA context is current on this thread; make one "
                     "current, or let the runtime use the primary context");
    HYB_TRY(result->check(driver.contextDevice(&result->device),
                          "read the device of the current context"));
    result->shortName = "cuda:" + std::to_string(result->device);
  } else {
    HYB_TRY(
        result->check(driver.primaryRetain(&result->context, result->device),
                      "start the GPU"));
    result->ownsPrimary = true;
  }
  HYB_TRY(result->describe());
  return result;
}

Status CudaContext::describe() {
  char text[256] = {};
  HYB_TRY(check(library->deviceName(text, sizeof(text) - 1, device),
                "read the GPU's name"));
  productName = text;
  computeCapability =
      10 * attribute(kCapabilityMajor) + attribute(kCapabilityMinor);
  return Status();
}

CudaContext::~CudaContext() {
  if (ownsPrimary)
    library->primaryRelease(device);
}

int CudaContext::attribute(DeviceAttribute which) const {
  int value = 0;
  return library->deviceAttribute(&value, which, device) == kSuccess ? value
                                                                     : 0;
}

void CudaContext::countBytes(int64_t change) {
  int64_t now = held.fetch_add(change) + change, before = peak.load();
  while (now > before && !peak.compare_exchange_weak(before, now))
    ;
}

Result<DeviceMemory> CudaContext::allocate(int64_t bytes) {
  if (bytes == 0)
    return DeviceMemory();
  ContextScope scope(*this);
  HYB_TRY(scope.status());
  Pointer address = 0;
  int code = library->allocate(&address, static_cast<size_t>(bytes));
  if (code == kOutOfMemory) {
    size_t free = 0, total = 0;
    library->memoryInfo(&free, &total);
    return failure(HYB_OUT_OF_MEMORY,
                   "%s: %" PRId64 " more bytes are needed, %zu of its %zu are "
                   "free; use a smaller batch, context or number of slots, or "
                   "end what else uses the GPU",
                   shortName.c_str(), bytes, free, total);
  }
  HYB_TRY(check(code, "allocate " + std::to_string(bytes) + " bytes"));
  void *pointer = reinterpret_cast<void *>(static_cast<uintptr_t>(address));
  return DeviceMemory(
      std::make_shared<CudaBlock>(shared_from_this(), pointer, false, bytes),
      pointer, bytes);
}

Result<DeviceMemory> CudaContext::allocatePinned(int64_t bytes) {
  if (bytes == 0)
    return DeviceMemory();
  ContextScope scope(*this);
  HYB_TRY(scope.status());
  void *address = nullptr;
  HYB_TRY(check(library->hostAllocate(&address, static_cast<size_t>(bytes),
                                      kHostAllocPortable),
                "pin " + std::to_string(bytes) + " bytes of the host"));
  return DeviceMemory(
      std::make_shared<CudaBlock>(shared_from_this(), address, true, 0),
      address, bytes);
}

} // namespace hyb::rt::cuda
