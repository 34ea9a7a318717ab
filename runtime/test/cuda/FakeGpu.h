//===- FakeGpu.h - Memory, streams and kernels of the fake driver ---------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Stricter than a GPU where that finds mistakes:
//
//   - memory of the device cannot be touched by the host: it is unmapped but
//     while the fake itself works on it, and new memory is full of ones, which
//     no float is
//   - nothing happens before somebody waits for its stream, so that a result
//     that is read too early is the old one, and so is an input that is
//     overwritten too early
//   - copies want pinned memory on the host's side
//   - every view of a launch must lie inside an allocation
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_TEST_CUDA_FAKEGPU_H
#define HYBRID_RUNTIME_TEST_CUDA_FAKEGPU_H

#include "FakeControl.h"
#include "core/Launch.h"
#include "cpu/CodeImage.h"
#include "cuda/DriverApi.h"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace hyb::test {

/// In the first word of a tensor map; its address and bytes follow.
inline constexpr uint64_t kFakeMapMagic = 0x70616d726f736e65;

struct FakeFunction {
  rt::KernelHandle kernel = nullptr;
  std::string symbol;
  /// The bytes of an element of each.
  std::vector<uint64_t> views;
  int64_t scratch = 0;
  size_t maps = 0;
  int dynamicShared = 48 << 10;
};

struct FakeModule {
  rt::CodeImage image;
  std::map<std::string, FakeFunction> functions;
};

/// A launch with its parameters as they were when it was asked for.
struct FakeLaunch {
  const FakeFunction *function;
  int64_t tasks;
  std::vector<uint64_t> parameters;
};

struct FakeGraph;

struct FakeStream {
  std::vector<std::function<int()>> work;
  /// What is asked for goes here while it is recorded.
  FakeGraph *recorded = nullptr;
};

struct FakeEvent {
  int64_t time = -1;
};

/// A kernel, or a graph within a graph.
struct FakeNode {
  FakeLaunch launch;
  std::vector<std::function<int()>> child;
};

struct FakeGraph {
  std::vector<FakeNode> nodes;
  size_t edges = 0;
  /// Of one that was recorded from a stream: it has no nodes.
  std::vector<std::function<int()>> work;
};

class FakeGpu {
public:
  static FakeGpu &instance();

  FakeControl control;
  std::mutex lock;

  /// The code of an injected failure, or success.
  int inject(int64_t &counter, int code);
  int complain(const std::string &what, int code);

  int allocate(rt::cuda::Pointer *address, size_t bytes);
  int release(rt::cuda::Pointer address);
  int pin(void **address, size_t bytes);
  int unpin(void *address);
  bool isPinned(const void *address, size_t bytes) const;
  bool isDevice(uint64_t address, uint64_t bytes) const;

  int load(const void *image, FakeModule **module);
  /// Checks a launch and copies its parameters.
  int prepare(const rt::cuda::KernelNode &node, FakeLaunch *launch);
  int encode(rt::cuda::TensorMap *map, unsigned rank, uint64_t address,
             const uint64_t *sizes, const uint64_t *strides,
             const unsigned *box, const unsigned *steps);
  int enqueue(rt::cuda::Stream stream, std::function<int()> work);
  int enqueueLaunch(rt::cuda::Stream stream, FakeLaunch launch);
  int beginRecording(rt::cuda::Stream stream);
  int endRecording(rt::cuda::Stream stream, FakeGraph **graph);
  int wait(rt::cuda::Stream stream);
  int waitForAll();

  std::map<rt::cuda::Stream, FakeStream> streams;
  std::set<FakeEvent *> events;
  /// Not success once the device is lost.
  int lastingError = 0;

private:
  FakeGpu();
  int execute(const FakeLaunch &launch);
  void protect(bool open);

  /// By first address; sizes without the guards.
  std::map<uint64_t, uint64_t> deviceBlocks, pinnedBlocks;
  std::vector<std::unique_ptr<FakeModule>> modules;
};

} // namespace hyb::test

#endif // HYBRID_RUNTIME_TEST_CUDA_FAKEGPU_H
