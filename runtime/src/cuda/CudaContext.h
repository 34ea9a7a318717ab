//===- CudaContext.h - A GPU's context, and memory in it --------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CUDA_CUDACONTEXT_H
#define HYBRID_RUNTIME_CUDA_CUDACONTEXT_H

#include "core/Device.h"
#include "cuda/Driver.h"

#include <atomic>

namespace hyb::rt::cuda {

inline Pointer pointerOf(const void *address) {
  return static_cast<Pointer>(reinterpret_cast<uintptr_t>(address));
}

/// The primary context of a GPU, or one that the caller made. Everything made
/// in it holds a share of it.
class CudaContext : public std::enable_shared_from_this<CudaContext> {
public:
  static Result<std::shared_ptr<CudaContext>> open(int ordinal,
                                                   bool useCurrent);
  ~CudaContext();

  const Driver &driver() const { return *library; }
  DriverContext handle() const { return context; }
  /// "cuda:0"
  const std::string &name() const { return shortName; }
  int ordinal() const { return device; }
  /// "NVIDIA H200"
  const std::string &product() const { return productName; }
  /// 90 for compute capability 9.0.
  int capability() const { return computeCapability; }
  int attribute(DeviceAttribute which) const;
  /// Of the memory of the GPU that was allocated here.
  int64_t peakBytes() const { return peak; }
  void countBytes(int64_t change);

  Status check(int code, const std::string &action) const {
    return library->check(code, shortName, action);
  }

  /// Not cleared.
  Result<DeviceMemory> allocate(int64_t bytes);
  /// Of the host, where the GPU can reach it.
  Result<DeviceMemory> allocatePinned(int64_t bytes);

private:
  Status describe();

  std::shared_ptr<const Driver> library;
  DriverContext context = nullptr;
  bool ownsPrimary = false;
  int device = 0, computeCapability = 0;
  std::atomic<int64_t> held{0}, peak{0};
  std::string shortName, productName;
};

/// Makes a context the calling thread's while it lives.
class ContextScope {
public:
  explicit ContextScope(const CudaContext &context) : context(context) {
    code = context.driver().contextPush(context.handle());
  }
  ~ContextScope() {
    DriverContext popped;
    if (code == kSuccess)
      context.driver().contextPop(&popped);
  }
  ContextScope(const ContextScope &) = delete;
  ContextScope &operator=(const ContextScope &) = delete;

  Status status() const { return context.check(code, "use its context"); }

private:
  const CudaContext &context;
  int code;
};

} // namespace hyb::rt::cuda

#endif // HYBRID_RUNTIME_CUDA_CUDACONTEXT_H
