//===- Transfers.cpp -----------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cuda/Transfers.h"

#include <algorithm>
#include <cstring>

namespace hyb::rt::cuda {

Result<std::unique_ptr<Transfers>>
Transfers::create(std::shared_ptr<CudaContext> context) {
  auto transfers = std::make_unique<Transfers>();
  transfers->context = std::move(context);
  ContextScope scope(*transfers->context);
  HYB_TRY(scope.status());
  for (Stream &stream : transfers->streams)
    HYB_TRY(transfers->context->check(
        transfers->context->driver().streamCreate(&stream, kStreamNonBlocking),
        "make a stream"));
  return transfers;
}

Transfers::~Transfers() {
  ContextScope scope(*context);
  for (Stream stream : streams)
    if (stream)
      context->driver().streamDestroy(stream);
}

Status Transfers::wait() const {
  for (Stream stream : streams)
    HYB_TRY(
        context->check(context->driver().streamWait(stream), "finish a copy"));
  return Status();
}

Result<char *> Transfers::buffer(size_t index) {
  if (buffers[index].bytes() == 0) {
    HYB_ASSIGN(buffers[index], context->allocatePinned(kPiece));
  }
  return static_cast<char *>(buffers[index].data());
}

Status Transfers::toDevice(void *target, int64_t bytes,
                           const PieceSource &source) {
  std::lock_guard<std::mutex> lock(turn);
  ContextScope scope(*context);
  HYB_TRY(scope.status());
  for (int64_t begin = 0; begin < bytes; begin += kPiece) {
    size_t index = static_cast<size_t>(begin / kPiece % 2);
    int64_t size = std::min(kPiece, bytes - begin);
    HYB_ASSIGN(char *staging, buffer(index));
    HYB_TRY(context->check(context->driver().streamWait(streams[index]),
                           "finish a copy"));
    source(staging, begin, size);
    HYB_TRY(
        context->check(context->driver().copyToDevice(
                           pointerOf(target) + static_cast<Pointer>(begin),
                           staging, static_cast<size_t>(size), streams[index]),
                       "copy to the GPU"));
  }
  return wait();
}

Status Transfers::toHost(void *target, const void *source, int64_t bytes) {
  std::lock_guard<std::mutex> lock(turn);
  ContextScope scope(*context);
  HYB_TRY(scope.status());
  auto pieceSize = [&](int64_t begin) {
    return static_cast<size_t>(std::clamp<int64_t>(bytes - begin, 0, kPiece));
  };
  auto start = [&](int64_t begin) -> Status {
    size_t index = static_cast<size_t>(begin / kPiece % 2);
    HYB_ASSIGN(char *staging, buffer(index));
    return context->check(context->driver().copyToHost(
                              staging,
                              pointerOf(source) + static_cast<Pointer>(begin),
                              pieceSize(begin), streams[index]),
                          "copy from the GPU");
  };
  if (bytes > 0)
    HYB_TRY(start(0));
  for (int64_t begin = 0; begin < bytes; begin += kPiece) {
    if (begin + kPiece < bytes)
      HYB_TRY(start(begin + kPiece));
    size_t index = static_cast<size_t>(begin / kPiece % 2);
    HYB_TRY(context->check(context->driver().streamWait(streams[index]),
                           "finish a copy"));
    std::memcpy(static_cast<char *>(target) + begin, buffers[index].data(),
                pieceSize(begin));
  }
  return Status();
}

Status Transfers::onDevice(void *target, const void *source, int64_t bytes) {
  if (bytes == 0)
    return Status();
  std::lock_guard<std::mutex> lock(turn);
  ContextScope scope(*context);
  HYB_TRY(scope.status());
  HYB_TRY(context->check(
      context->driver().copyOnDevice(pointerOf(target), pointerOf(source),
                                     static_cast<size_t>(bytes), streams[0]),
      "copy on the GPU"));
  return wait();
}

Status Transfers::clear(void *target, int64_t bytes) {
  if (bytes == 0)
    return Status();
  std::lock_guard<std::mutex> lock(turn);
  ContextScope scope(*context);
  HYB_TRY(scope.status());
  HYB_TRY(context->check(context->driver().fillBytes(pointerOf(target), 0,
                                                     static_cast<size_t>(bytes),
                                                     streams[0]),
                         "clear memory of the GPU"));
  return wait();
}

} // namespace hyb::rt::cuda
