//===- FakeControl.h - What a test asks of the fake driver ------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_TEST_CUDA_FAKECONTROL_H
#define HYBRID_RUNTIME_TEST_CUDA_FAKECONTROL_H

#include <cstdint>

namespace hyb::test {

/// Shared between a test and the library, which finds it with
/// `hyb_fake_control`. The environment variable HYBRID_FAKE_CUDA sets the first
/// group at start: "devices=0,version=11040,memory=1000000".
struct FakeControl {
  int64_t devices = 1;
  int64_t version = 13000;
  int64_t memory = int64_t(1) << 32;
  int64_t capability = 90;
  /// Fails at the n-th from now on, counted from 1; 0: never. With -1 a counter
  /// has fired.
  int64_t failAllocation = 0, failPinned = 0, failModule = 0, failLaunch = 0;
  /// From the n-th launch on everything fails, as after a bad address.
  int64_t loseDevice = 0;

  /// What is alive, and what happened.
  int64_t liveBytes = 0, liveAllocations = 0, livePinned = 0, liveStreams = 0,
          liveEvents = 0, liveModules = 0, liveGraphs = 0, liveContexts = 0;
  int64_t allocations = 0, pinned = 0, launches = 0, graphLaunches = 0,
          contextDepth = 0, tensorMaps = 0, blocks = 0;
  /// Edges along which kernels begin early; negative: the driver refuses them.
  int64_t earlyEdges = 0;
  /// Kernels that all of the memory of a processor was asked for as shared
  /// memory.
  int64_t carvedOut = 0;
  /// Of the library of products: the n-th time that it is asked for an
  /// algorithm it has none, and the n-th product fails.
  int64_t failChoice = 0, failProduct = 0;
  /// Its objects that are alive; algorithms that it was asked for, products
  /// that were put into streams, those of them that were recorded, and products
  /// that ran.
  int64_t liveProductObjects = 0, choices = 0, productCalls = 0,
          productsRecorded = 0, productsRun = 0;
  /// Misuse that the real driver would not notice or would answer with worse;
  /// `complaint` says what the first was.
  int64_t complaints = 0;
  char complaint[256] = {};
};

} // namespace hyb::test

#endif // HYBRID_RUNTIME_TEST_CUDA_FAKECONTROL_H
