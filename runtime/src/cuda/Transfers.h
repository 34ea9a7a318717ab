//===- Transfers.h - Copies that have happened when they return -----------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CUDA_TRANSFERS_H
#define HYBRID_RUNTIME_CUDA_TRANSFERS_H

#include "cuda/CudaContext.h"

#include <mutex>

namespace hyb::rt::cuda {

/// Copies between the GPU and memory that is not pinned, in pieces through two
/// pinned buffers: while one is on its way the other is filled or emptied.
/// Any thread may call; calls take turns.
class Transfers {
public:
  static Result<std::unique_ptr<Transfers>>
  create(std::shared_ptr<CudaContext> context);
  ~Transfers();

  Status toDevice(void *target, int64_t bytes, const PieceSource &source);
  Status toHost(void *target, const void *source, int64_t bytes);
  Status onDevice(void *target, const void *source, int64_t bytes);
  Status clear(void *target, int64_t bytes);

private:
  static constexpr int64_t kPiece = int64_t(4) << 20;

  Status wait() const;
  /// Of a buffer, made at its first use.
  Result<char *> buffer(size_t index);

  std::shared_ptr<CudaContext> context;
  std::mutex turn;
  /// One stream per buffer: waiting for the one is waiting for its piece.
  Stream streams[2] = {};
  DeviceMemory buffers[2];
};

} // namespace hyb::rt::cuda

#endif // HYBRID_RUNTIME_CUDA_TRANSFERS_H
