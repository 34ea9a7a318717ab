//===- CpuDevice.h - The processor as a device ------------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CPU_CPUDEVICE_H
#define HYBRID_RUNTIME_CPU_CPUDEVICE_H

#include "core/Device.h"
#include "cpu/CpuLevel.h"
#include "cpu/ThreadPool.h"

namespace hyb::rt {

/// Memory of the process, code for a level of the processor, and a thread pool.
/// A queue does what it is asked at once.
class CpuDevice : public Device {
public:
  /// `level` forces one; else the best that processor and artefact have.
  CpuDevice(ThreadPool &threads, std::optional<CpuLevel> level)
      : threads(threads), forcedLevel(level) {}

  const char *name() const override { return "cpu"; }
  std::string description() const override;
  hyb_dl_device dlDevice() const override { return {HYB_DL_CPU, 0}; }
  bool isHost() const override { return true; }
  int64_t peakBytes() const override { return 0; }

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
  Result<CpuLevel> chooseLevel(const HbxReader &artefact) const;

  ThreadPool &threads;
  std::optional<CpuLevel> forcedLevel;
};

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CPU_CPUDEVICE_H
