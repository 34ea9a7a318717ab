//===- Nvtx.h - Ranges for NVIDIA's profilers -------------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CUDA_NVTX_H
#define HYBRID_RUNTIME_CUDA_NVTX_H

#include <memory>

namespace hyb::rt::cuda {

/// The two functions of NVTX that nest named ranges on a thread. The library is
/// opened only when a profiler has started this process.
class Nvtx {
public:
  /// Null without a profiler or without the library.
  static std::unique_ptr<Nvtx> open();
  ~Nvtx();

  void begin(const char *name) const { push(name); }
  void end() const { pop(); }

private:
  void *library = nullptr;
  int (*push)(const char *) = nullptr;
  int (*pop)() = nullptr;
};

} // namespace hyb::rt::cuda

#endif // HYBRID_RUNTIME_CUDA_NVTX_H
