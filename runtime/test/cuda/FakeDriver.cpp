//===- FakeDriver.cpp - The driver's functions, without a GPU -------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A library with the symbols of libcuda.so.1 that the runtime uses. Kernels are
// run on the processor (FakeImage.h); arguments are checked; failures happen
// when a test wants them (FakeControl.h).
//
//===----------------------------------------------------------------------===//

#include "FakeGpu.h"

#include <cstring>

using namespace hyb::rt::cuda;
using hyb::test::FakeControl;
using hyb::test::FakeEvent;
using hyb::test::FakeFunction;
using hyb::test::FakeGpu;
using hyb::test::FakeGraph;
using hyb::test::FakeLaunch;
using hyb::test::FakeModule;
using hyb::test::FakeNode;

#define FAKE extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kInvalidValue = 1, kInvalidContext = 201, kNotReady = 600;

thread_local std::vector<DriverContext> contexts;

FakeGpu &gpu() { return FakeGpu::instance(); }
FakeControl &control() { return gpu().control; }

/// Locks the GPU and refuses a thread without a context.
struct Entry {
  Entry() : guard(gpu().lock) {
    code = contexts.empty()
               ? gpu().complain("call without a context", kInvalidContext)
               : kSuccess;
  }
  std::lock_guard<std::mutex> guard;
  int code;
};

#define FAKE_ENTER                                                             \
  Entry entry;                                                                 \
  if (entry.code)                                                              \
  return entry.code

DriverContext primary() {
  static char context;
  return reinterpret_cast<DriverContext>(&context);
}

void *at(Pointer address) {
  return reinterpret_cast<void *>(static_cast<uintptr_t>(address));
}

} // namespace

FAKE FakeControl *hyb_fake_control() { return &control(); }
/// Heals a lost device.
FAKE void hyb_fake_restart() {
  gpu().lastingError = 0;
  control().complaints = 0;
}

FAKE int cuInit(unsigned) {
  return control().devices == 0 ? kNoDevice : kSuccess;
}
FAKE int cuDriverGetVersion(int *version) {
  *version = static_cast<int>(control().version);
  return kSuccess;
}
FAKE int cuGetErrorName(int code, const char **text) {
  *text = code == kOutOfMemory            ? "CUDA_ERROR_OUT_OF_MEMORY"
          : code == kIllegalAddress       ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : code == kLaunchOutOfResources ? "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"
          : code == kNoBinaryForGpu       ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
          : code == kInvalidPtx           ? "CUDA_ERROR_INVALID_PTX"
                                          : "CUDA_ERROR";
  return kSuccess;
}
FAKE int cuGetErrorString(int, const char **text) {
  *text = "as the test wants it";
  return kSuccess;
}

//===----------------------------------------------------------------------===//
// Device and context
//===----------------------------------------------------------------------===//

/// Contexts come and go on several threads at once, without the lock.
static void count(int64_t &counter, int64_t change) {
  __atomic_fetch_add(&counter, change, __ATOMIC_RELAXED);
}
FAKE int cuDeviceGetCount(int *devices) {
  *devices = static_cast<int>(control().devices);
  return kSuccess;
}
FAKE int cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return ordinal < control().devices ? kSuccess : kInvalidDevice;
}
FAKE int cuDeviceGetName(char *name, int size, int) {
  std::snprintf(name, static_cast<size_t>(size), "Fake GPU");
  return kSuccess;
}
FAKE int cuDeviceGetAttribute(int *value, int attribute, int) {
  int capability = static_cast<int>(control().capability);
  *value = attribute == kCapabilityMajor          ? capability / 10
           : attribute == kCapabilityMinor        ? capability % 10
           : attribute == kMaxThreadsPerBlock     ? 1024
           : attribute == kProcessors             ? 2
           : attribute == kMaxSharedPerBlockOptIn ? 227 << 10
                                                  : 0;
  return kSuccess;
}
FAKE int cuDevicePrimaryCtxRetain(DriverContext *context, int) {
  count(control().liveContexts, 1);
  *context = primary();
  return kSuccess;
}
FAKE int cuDevicePrimaryCtxRelease_v2(int) {
  count(control().liveContexts, -1);
  return kSuccess;
}
FAKE int cuCtxGetCurrent(DriverContext *context) {
  *context = contexts.empty() ? nullptr : contexts.back();
  return kSuccess;
}
FAKE int cuCtxGetDevice(int *device) {
  *device = 0;
  return contexts.empty() ? kInvalidContext : kSuccess;
}
FAKE int cuCtxPushCurrent_v2(DriverContext context) {
  if (context != primary())
    return gpu().complain("a context that does not exist", kInvalidContext);
  contexts.push_back(context);
  count(control().contextDepth, 1);
  return kSuccess;
}
FAKE int cuCtxPopCurrent_v2(DriverContext *context) {
  if (contexts.empty())
    return gpu().complain("more pops than pushes", kInvalidContext);
  *context = contexts.back();
  contexts.pop_back();
  count(control().contextDepth, -1);
  return kSuccess;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

FAKE int cuMemGetInfo_v2(size_t *free, size_t *total) {
  FAKE_ENTER;
  *total = static_cast<size_t>(control().memory);
  *free = static_cast<size_t>(control().memory - control().liveBytes);
  return kSuccess;
}
FAKE int cuMemAlloc_v2(Pointer *address, size_t bytes) {
  FAKE_ENTER;
  return gpu().lastingError ? gpu().lastingError
                            : gpu().allocate(address, bytes);
}
FAKE int cuMemFree_v2(Pointer address) {
  FAKE_ENTER;
  return gpu().release(address);
}
FAKE int cuMemHostAlloc(void **address, size_t bytes, unsigned) {
  FAKE_ENTER;
  return gpu().pin(address, bytes);
}
FAKE int cuMemFreeHost(void *address) {
  FAKE_ENTER;
  return gpu().unpin(address);
}

static int copyLater(Stream stream, void *target, const void *source,
                     size_t bytes, bool targetOnDevice, bool sourceOnDevice) {
  auto isThere = [&](const void *address, bool onDevice) {
    return onDevice
               ? gpu().isDevice(reinterpret_cast<uintptr_t>(address), bytes)
               : gpu().isPinned(address, bytes);
  };
  if (!isThere(target, targetOnDevice) || !isThere(source, sourceOnDevice))
    return gpu().complain("copy outside device or pinned memory",
                          kInvalidValue);
  return gpu().enqueue(stream, [=] {
    std::memcpy(target, source, bytes);
    return int(kSuccess);
  });
}

FAKE int cuMemcpyHtoDAsync_v2(Pointer target, const void *source, size_t bytes,
                              Stream stream) {
  FAKE_ENTER;
  return copyLater(stream, at(target), source, bytes, true, false);
}
FAKE int cuMemcpyDtoHAsync_v2(void *target, Pointer source, size_t bytes,
                              Stream stream) {
  FAKE_ENTER;
  return copyLater(stream, target, at(source), bytes, false, true);
}
FAKE int cuMemcpyDtoDAsync_v2(Pointer target, Pointer source, size_t bytes,
                              Stream stream) {
  FAKE_ENTER;
  return copyLater(stream, at(target), at(source), bytes, true, true);
}
FAKE int cuMemsetD8Async(Pointer target, unsigned char byte, size_t count,
                         Stream stream) {
  FAKE_ENTER;
  if (!gpu().isDevice(target, count))
    return gpu().complain("fill outside device memory", kInvalidValue);
  return gpu().enqueue(stream, [=] {
    std::memset(at(target), byte, count);
    return int(kSuccess);
  });
}
FAKE int cuMemsetD32Async(Pointer target, unsigned word, size_t count,
                          Stream stream) {
  FAKE_ENTER;
  if (!gpu().isDevice(target, 4 * count))
    return gpu().complain("fill outside device memory", kInvalidValue);
  return gpu().enqueue(stream, [=] {
    std::fill_n(static_cast<unsigned *>(at(target)), count, word);
    return int(kSuccess);
  });
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

FAKE int cuStreamCreate(Stream *stream, unsigned) {
  FAKE_ENTER;
  *stream = reinterpret_cast<Stream>(new char);
  gpu().streams[*stream];
  ++control().liveStreams;
  return kSuccess;
}
FAKE int cuStreamDestroy_v2(Stream stream) {
  FAKE_ENTER;
  int code = gpu().wait(stream);
  gpu().streams.erase(stream);
  delete reinterpret_cast<char *>(stream);
  --control().liveStreams;
  return code;
}
FAKE int cuStreamSynchronize(Stream stream) {
  FAKE_ENTER;
  return gpu().wait(stream);
}
FAKE int cuStreamBeginCapture_v2(Stream stream, int mode) {
  FAKE_ENTER;
  // Of a thread's own recording others need know nothing.
  if (mode != kCaptureThreadLocal)
    return gpu().complain("a recording of all threads", kInvalidValue);
  return gpu().beginRecording(stream);
}
FAKE int cuStreamEndCapture(Stream stream, Graph *graph) {
  FAKE_ENTER;
  return gpu().endRecording(stream, reinterpret_cast<FakeGraph **>(graph));
}
FAKE int cuEventCreate(Event *event, unsigned) {
  FAKE_ENTER;
  *event = reinterpret_cast<Event>(new FakeEvent());
  ++control().liveEvents;
  return kSuccess;
}
FAKE int cuEventDestroy_v2(Event event) {
  FAKE_ENTER;
  delete reinterpret_cast<FakeEvent *>(event);
  --control().liveEvents;
  return kSuccess;
}
FAKE int cuEventRecord(Event event, Stream stream) {
  FAKE_ENTER;
  return gpu().enqueue(stream, [=] {
    // A clock of its own, a microsecond an event.
    static int64_t clock = 0;
    reinterpret_cast<FakeEvent *>(event)->time = ++clock;
    return int(kSuccess);
  });
}
FAKE int cuEventElapsedTime(float *milliseconds, Event begin, Event end) {
  FAKE_ENTER;
  int64_t from = reinterpret_cast<FakeEvent *>(begin)->time;
  int64_t to = reinterpret_cast<FakeEvent *>(end)->time;
  if (from < 0 || to < 0)
    return kNotReady;
  *milliseconds = static_cast<float>(to - from) * 1e-3f;
  return kSuccess;
}

//===----------------------------------------------------------------------===//
// Code and launches
//===----------------------------------------------------------------------===//

FAKE int cuModuleLoadDataEx(Module *module, const void *image, unsigned count,
                            int *names, void **values) {
  FAKE_ENTER;
  int code = gpu().load(image, reinterpret_cast<FakeModule **>(module));
  for (unsigned i = 0; code != kSuccess && i < count; ++i)
    if (names[i] == kJitErrorLog)
      std::strcpy(
          static_cast<char *>(values[i]),
          "ptxas application ptx input, line 12; fatal:\n what the fake "
          "has to say\n");
  return code;
}
FAKE int cuModuleUnload(Module) {
  FAKE_ENTER;
  --control().liveModules;
  return kSuccess;
}
FAKE int cuModuleGetFunction(Function *function, Module module,
                             const char *name) {
  FAKE_ENTER;
  auto &functions = reinterpret_cast<FakeModule *>(module)->functions;
  auto it = functions.find(name);
  if (it == functions.end())
    return kNotFound;
  *function = reinterpret_cast<Function>(&it->second);
  return kSuccess;
}
FAKE int cuFuncGetAttribute(int *value, int attribute, Function) {
  *value = attribute == kFunctionMaxThreads  ? 1024
           : attribute == kFunctionRegisters ? 32
                                             : 0;
  return kSuccess;
}
FAKE int cuFuncSetAttribute(Function function, int attribute, int value) {
  FAKE_ENTER;
  if (attribute == kFunctionSharedCarveOut && value == 100) {
    ++control().carvedOut;
    return kSuccess;
  }
  if (attribute != kFunctionMaxDynamicShared || value > 227 << 10)
    return gpu().complain("attribute out of range", kInvalidValue);
  reinterpret_cast<FakeFunction *>(function)->dynamicShared = value;
  return kSuccess;
}
FAKE int cuLaunchKernel(Function function, unsigned gridX, unsigned gridY,
                        unsigned gridZ, unsigned blockX, unsigned blockY,
                        unsigned blockZ, unsigned sharedBytes, Stream stream,
                        void **parameters, void **extra) {
  FAKE_ENTER;
  KernelNode node = {function,   gridX,  gridY,   gridZ,
                     blockX,     blockY, blockZ,  sharedBytes,
                     parameters, extra,  nullptr, nullptr};
  FakeLaunch launch;
  if (int code = gpu().prepare(node, &launch))
    return code;
  return gpu().enqueueLaunch(stream, std::move(launch));
}

FAKE int cuTensorMapEncodeTiled(TensorMap *map, int type, unsigned rank,
                                void *address, const uint64_t *sizes,
                                const uint64_t *strides, const unsigned *box,
                                const unsigned *steps, int interleave,
                                int swizzle, int, int fill) {
  FAKE_ENTER;
  if ((type != kTensorF16 && type != kTensorBf16) || interleave != 0 ||
      swizzle != kSwizzle128 || fill != 0)
    return gpu().complain("tensor map of an unknown kind", kInvalidValue);
  return gpu().encode(map, rank, reinterpret_cast<uintptr_t>(address), sizes,
                      strides, box, steps);
}

FAKE int cuGraphCreate(Graph *graph, unsigned) {
  FAKE_ENTER;
  *graph = reinterpret_cast<Graph>(new FakeGraph());
  return kSuccess;
}
FAKE int cuGraphAddKernelNode_v2(GraphNode *node, Graph graph,
                                 const GraphNode *, size_t before,
                                 const KernelNode *wanted) {
  FAKE_ENTER;
  auto &made = *reinterpret_cast<FakeGraph *>(graph);
  auto &nodes = made.nodes;
  // Without an edge of its own it must get one (cuGraphAddDependencies_v2).
  made.edges += before;
  if (before > (nodes.empty() ? 0 : 1))
    return gpu().complain("a graph that is not a chain", kInvalidValue);
  FakeNode added;
  if (int code = gpu().prepare(*wanted, &added.launch))
    return code;
  nodes.push_back(std::move(added));
  *node = reinterpret_cast<GraphNode>(nodes.size());
  return kSuccess;
}
FAKE int cuGraphAddChildGraphNode(GraphNode *node, Graph graph,
                                  const GraphNode *before, size_t count,
                                  Graph child) {
  FAKE_ENTER;
  auto &made = *reinterpret_cast<FakeGraph *>(graph);
  const auto &recorded = *reinterpret_cast<FakeGraph *>(child);
  if (count != (made.nodes.empty() ? 0 : 1) ||
      (count == 1 &&
       reinterpret_cast<uintptr_t>(*before) != made.nodes.size()) ||
      !recorded.nodes.empty() || recorded.work.empty())
    return gpu().complain("a graph within a graph that is not in the chain",
                          kInvalidValue);
  made.edges += count;
  made.nodes.push_back({FakeLaunch(), recorded.work});
  *node = reinterpret_cast<GraphNode>(made.nodes.size());
  return kSuccess;
}
FAKE int cuGraphAddDependencies_v2(Graph graph, const GraphNode *from,
                                   const GraphNode *to, const GraphEdge *edge,
                                   size_t count) {
  FAKE_ENTER;
  auto &made = *reinterpret_cast<FakeGraph *>(graph);
  auto number = [](GraphNode node) {
    return reinterpret_cast<uintptr_t>(node);
  };
  if (count != 1 || made.nodes.size() < 2 || number(*to) != made.nodes.size() ||
      number(*from) + 1 != number(*to) || edge->fromPort != kPortProgrammatic ||
      edge->toPort != 0 || edge->type != kEdgeProgrammatic ||
      !made.nodes[made.nodes.size() - 2].child.empty())
    return gpu().complain("an edge of an unknown kind", kInvalidValue);
  if (control().earlyEdges < 0)
    return kInvalidValue;
  ++made.edges;
  ++control().earlyEdges;
  return kSuccess;
}
FAKE int cuGraphInstantiateWithFlags(GraphExec *exec, Graph graph,
                                     unsigned long long) {
  FAKE_ENTER;
  const auto &made = *reinterpret_cast<FakeGraph *>(graph);
  if (made.edges + 1 != made.nodes.size() && !made.nodes.empty())
    return gpu().complain("a graph that is not a chain", kInvalidValue);
  *exec = reinterpret_cast<GraphExec>(
      new FakeGraph(*reinterpret_cast<FakeGraph *>(graph)));
  ++control().liveGraphs;
  return kSuccess;
}
FAKE int cuGraphLaunch(GraphExec exec, Stream stream) {
  FAKE_ENTER;
  ++control().graphLaunches;
  for (const FakeNode &node : reinterpret_cast<FakeGraph *>(exec)->nodes) {
    int code = node.child.empty() ? gpu().enqueueLaunch(stream, node.launch)
                                  : kSuccess;
    for (const auto &work : node.child)
      if (code == kSuccess)
        code = gpu().enqueue(stream, work);
    if (code)
      return code;
  }
  return kSuccess;
}
FAKE int cuGraphExecDestroy(GraphExec exec) {
  FAKE_ENTER;
  delete reinterpret_cast<FakeGraph *>(exec);
  --control().liveGraphs;
  return kSuccess;
}
FAKE int cuGraphDestroy(Graph graph) {
  FAKE_ENTER;
  delete reinterpret_cast<FakeGraph *>(graph);
  return kSuccess;
}
