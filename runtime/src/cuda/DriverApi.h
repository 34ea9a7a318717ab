//===- DriverApi.h - What is used of the CUDA driver ------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declarations of our own, so that the runtime builds without a toolkit. Names,
// numbers and layouts are those of NVIDIA's documentation of the driver API;
// runtime/test/cuda/DriverApiTest.cpp compares them with cuda.h where there is
// one.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CUDA_DRIVERAPI_H
#define HYBRID_RUNTIME_CUDA_DRIVERAPI_H

#include <cstddef>
#include <cstdint>

namespace hyb::rt::cuda {

enum Code : int {
  kSuccess = 0,
  kOutOfMemory = 2,
  kStubLibrary = 34,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kNoBinaryForGpu = 209,
  kInvalidPtx = 218,
  kUnsupportedPtxVersion = 222,
  kNotFound = 500,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kLaunchFailed = 719
};

enum DeviceAttribute : int {
  kMaxThreadsPerBlock = 1,
  kProcessors = 16,
  kCapabilityMajor = 75,
  kCapabilityMinor = 76,
  kMaxSharedPerBlockOptIn = 97
};

enum FunctionAttribute : int {
  kFunctionMaxThreads = 0,
  kFunctionStaticShared = 1,
  kFunctionRegisters = 4,
  kFunctionMaxDynamicShared = 8,
  kFunctionSharedCarveOut = 9
};

enum JitOption : int {
  kJitInfoLog = 3,
  kJitInfoLogSize = 4,
  kJitErrorLog = 5,
  kJitErrorLogSize = 6
};

/// CUtensorMapDataType, CUtensorMapSwizzle, CUtensorMapL2promotion.
enum TensorType : int { kTensorF16 = 6, kTensorBf16 = 9 };
enum TensorSwizzle : int { kSwizzle128 = 3 };
enum TensorPromotion : int { kPromote256 = 3 };

/// CUtensorMap
struct alignas(64) TensorMap {
  uint64_t words[16];
};

constexpr unsigned kHostAllocPortable = 1;
constexpr unsigned kStreamNonBlocking = 1;
/// CUstreamCaptureMode: what other threads do meanwhile is theirs.
constexpr int kCaptureThreadLocal = 1;

using DriverContext = struct DriverContextTag *;
using Module = struct ModuleTag *;
using Function = struct FunctionTag *;
using Stream = struct StreamTag *;
using Event = struct EventTag *;
using Graph = struct GraphTag *;
using GraphNode = struct GraphNodeTag *;
using GraphExec = struct GraphExecTag *;
using Pointer = unsigned long long;

/// CUDA_KERNEL_NODE_PARAMS_v2
struct KernelNode {
  Function function;
  unsigned gridX, gridY, gridZ;
  unsigned blockX, blockY, blockZ;
  unsigned sharedBytes;
  void **parameters;
  void **extra;
  void *kernel;
  DriverContext context;
};

/// CUgraphEdgeData
struct GraphEdge {
  unsigned char fromPort, toPort, type;
  unsigned char reserved[5];
};
/// Of an edge along which the second kernel may begin once all blocks of the
/// first have said so or ended, and waits by itself for the first one's end.
constexpr unsigned char kPortProgrammatic = 1, kEdgeProgrammatic = 1;

/// Functions that older drivers lack, null there.
#define HYB_CUDA_OPTIONAL_FUNCTIONS(F)                                         \
  /* since CUDA 12.3 */                                                        \
  F(graphAddEdges, "cuGraphAddDependencies_v2",                                \
    (Graph graph, const GraphNode *from, const GraphNode *to,                  \
     const GraphEdge *edges, size_t count))

/// Every other function of the driver that is used: our name, its symbol, its
/// type.
#define HYB_CUDA_FUNCTIONS(F)                                                  \
  F(init, "cuInit", (unsigned flags))                                          \
  F(driverVersion, "cuDriverGetVersion", (int *version))                       \
  F(errorName, "cuGetErrorName", (int code, const char **text))                \
  F(errorText, "cuGetErrorString", (int code, const char **text))              \
  F(deviceCount, "cuDeviceGetCount", (int *count))                             \
  F(deviceGet, "cuDeviceGet", (int *device, int ordinal))                      \
  F(deviceName, "cuDeviceGetName", (char *name, int size, int device))         \
  F(deviceAttribute, "cuDeviceGetAttribute",                                   \
    (int *value, int attribute, int device))                                   \
  F(primaryRetain, "cuDevicePrimaryCtxRetain",                                 \
    (DriverContext * context, int device))                                     \
  F(primaryRelease, "cuDevicePrimaryCtxRelease_v2", (int device))              \
  F(contextCurrent, "cuCtxGetCurrent", (DriverContext * context))              \
  F(contextDevice, "cuCtxGetDevice", (int *device))                            \
  F(contextPush, "cuCtxPushCurrent_v2", (DriverContext context))               \
  F(contextPop, "cuCtxPopCurrent_v2", (DriverContext * context))               \
  F(memoryInfo, "cuMemGetInfo_v2", (size_t *free, size_t *total))              \
  F(allocate, "cuMemAlloc_v2", (Pointer * address, size_t bytes))              \
  F(free, "cuMemFree_v2", (Pointer address))                                   \
  F(hostAllocate, "cuMemHostAlloc",                                            \
    (void **address, size_t bytes, unsigned flags))                            \
  F(hostFree, "cuMemFreeHost", (void *address))                                \
  F(copyToDevice, "cuMemcpyHtoDAsync_v2",                                      \
    (Pointer target, const void *source, size_t bytes, Stream stream))         \
  F(copyToHost, "cuMemcpyDtoHAsync_v2",                                        \
    (void *target, Pointer source, size_t bytes, Stream stream))               \
  F(copyOnDevice, "cuMemcpyDtoDAsync_v2",                                      \
    (Pointer target, Pointer source, size_t bytes, Stream stream))             \
  F(fillWords, "cuMemsetD32Async",                                             \
    (Pointer target, unsigned word, size_t count, Stream stream))              \
  F(fillBytes, "cuMemsetD8Async",                                              \
    (Pointer target, unsigned char byte, size_t count, Stream stream))         \
  F(streamCreate, "cuStreamCreate", (Stream * stream, unsigned flags))         \
  F(streamDestroy, "cuStreamDestroy_v2", (Stream stream))                      \
  F(streamWait, "cuStreamSynchronize", (Stream stream))                        \
  F(captureBegin, "cuStreamBeginCapture_v2", (Stream stream, int mode))        \
  F(captureEnd, "cuStreamEndCapture", (Stream stream, Graph * graph))          \
  F(eventCreate, "cuEventCreate", (Event * event, unsigned flags))             \
  F(eventDestroy, "cuEventDestroy_v2", (Event event))                          \
  F(eventRecord, "cuEventRecord", (Event event, Stream stream))                \
  F(eventElapsed, "cuEventElapsedTime",                                        \
    (float *milliseconds, Event begin, Event end))                             \
  F(moduleLoad, "cuModuleLoadDataEx",                                          \
    (Module * module, const void *image, unsigned options, int *names,         \
     void **values))                                                           \
  F(moduleUnload, "cuModuleUnload", (Module module))                           \
  F(moduleFunction, "cuModuleGetFunction",                                     \
    (Function * function, Module module, const char *name))                    \
  F(functionAttribute, "cuFuncGetAttribute",                                   \
    (int *value, int attribute, Function function))                            \
  F(functionSet, "cuFuncSetAttribute",                                         \
    (Function function, int attribute, int value))                             \
  F(launch, "cuLaunchKernel",                                                  \
    (Function function, unsigned gridX, unsigned gridY, unsigned gridZ,        \
     unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,  \
     Stream stream, void **parameters, void **extra))                          \
  F(tensorMapEncode, "cuTensorMapEncodeTiled",                                 \
    (TensorMap * map, int type, unsigned rank, void *address,                  \
     const uint64_t *sizes, const uint64_t *strides, const unsigned *box,      \
     const unsigned *steps, int interleave, int swizzle, int promotion,        \
     int fill))                                                                \
  F(graphCreate, "cuGraphCreate", (Graph * graph, unsigned flags))             \
  F(graphAddKernel, "cuGraphAddKernelNode_v2",                                 \
    (GraphNode * node, Graph graph, const GraphNode *before, size_t count,     \
     const KernelNode *parameters))                                            \
  F(graphAddChild, "cuGraphAddChildGraphNode",                                 \
    (GraphNode * node, Graph graph, const GraphNode *before, size_t count,     \
     Graph child))                                                             \
  F(graphInstantiate, "cuGraphInstantiateWithFlags",                           \
    (GraphExec * exec, Graph graph, unsigned long long flags))                 \
  F(graphLaunch, "cuGraphLaunch", (GraphExec exec, Stream stream))             \
  F(graphExecDestroy, "cuGraphExecDestroy", (GraphExec exec))                  \
  F(graphDestroy, "cuGraphDestroy", (Graph graph))

} // namespace hyb::rt::cuda

#endif // HYBRID_RUNTIME_CUDA_DRIVERAPI_H
