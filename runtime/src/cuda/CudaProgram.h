//===- CudaProgram.h - GPU code of an artefact, loaded ----------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CUDA_CUDAPROGRAM_H
#define HYBRID_RUNTIME_CUDA_CUDAPROGRAM_H

#include "core/Plan.h"
#include "cuda/CudaContext.h"

#include <deque>

namespace hyb::rt::cuda {

/// What a KernelHandle of a GPU points to.
struct CudaKernel {
  Function function = nullptr;
  std::string name;
  unsigned sharedBytes = 0, threads = 0;
  int registers = 0, maxThreads = 0;
  /// Waits for the kernel in front of it by itself.
  bool overlaps = false;
  /// Blocks that are started at most, each of which takes several tasks; 0: one
  /// per task.
  int64_t mostBlocks = 0;
  std::vector<PlanTensorMap> maps;
};

/// The best of the artefact's chips for a GPU of `capability`: its own machine
/// code, machine code of an older chip of the same generation, or PTX. Chips
/// ending in a letter are for exactly one capability. An error names both
/// sides.
Result<std::string> chooseChip(const HbxReader &artefact, int capability,
                               const std::string &device);

class CudaProgram : public Program {
public:
  static Result<std::unique_ptr<Program>>
  load(std::shared_ptr<CudaContext> context, const HbxReader &artefact,
       const std::string &chip, const Plan &plan);
  ~CudaProgram() override;

private:
  Status loadModule(const HbxReader &artefact, const std::string &chip);
  /// The driver's answer and log, as one line.
  Status tryImage(const std::string &what, const void *image);
  Result<CudaKernel> loadKernel(const PlanKernel &kernel) const;

  std::shared_ptr<CudaContext> context;
  Module module = nullptr;
  /// A deque, because handles point into it.
  std::deque<CudaKernel> loaded;
};

} // namespace hyb::rt::cuda

#endif // HYBRID_RUNTIME_CUDA_CUDAPROGRAM_H
