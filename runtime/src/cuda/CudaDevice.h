//===- CudaDevice.h - A GPU as a device -------------------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CUDA_CUDADEVICE_H
#define HYBRID_RUNTIME_CUDA_CUDADEVICE_H

#include "core/Device.h"

#include <mutex>

namespace hyb::rt {

namespace cuda {
class CublasLt;
class CudaContext;
class Transfers;
} // namespace cuda

class CudaDevice : public Device {
public:
  /// GPU number `ordinal`; with `useCurrentContext` the one whose context is
  /// current on this thread.
  static Result<std::unique_ptr<Device>>
  open(int ordinal, bool useCurrentContext, ProductChoice products);
  ~CudaDevice() override;

  const char *name() const override;
  std::string description() const override;
  hyb_dl_device dlDevice() const override;
  bool isHost() const override { return false; }
  int64_t peakBytes() const override;

  Result<std::string> choosePlan(const HbxReader &artefact) const override;
  Result<std::unique_ptr<Program>> load(const HbxReader &artefact,
                                        const std::string &planName,
                                        const Plan &plan) override;
  Result<std::unique_ptr<Queue>>
  createQueue(const QueueOptions &options) override;

  Result<DeviceMemory> allocate(int64_t bytes,
                                Contents contents = Contents::Zeros) override;
  Result<StagedMemory> allocateStaged(int64_t bytes) override;
  Status write(void *target, const void *source, int64_t bytes) override;
  Status write(void *target, int64_t bytes, const PieceSource &source) override;
  Status read(void *target, const void *source, int64_t bytes) const override;
  Status copy(void *target, const void *source, int64_t bytes) override;
  Status clear(void *target, int64_t bytes) override;

private:
  /// Opens cuBLASLt for a program that it may serve.
  Status giveProducts(Program &program, const Plan &plan);

  std::shared_ptr<cuda::CudaContext> context;
  ProductChoice choice = ProductChoice::Compiled;
  /// Opened by the first program that asks for it.
  std::shared_ptr<const cuda::CublasLt> library;
  std::mutex libraryTurn;
  std::unique_ptr<cuda::Transfers> transfers;
};

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CUDA_CUDADEVICE_H
