//===- DriverApiTest.cpp - Our declarations against cuda.h ---------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Built only where the CUDA toolkit is. Nothing runs: what is compared is known
// to the compiler.
//
//===----------------------------------------------------------------------===//

#include "cuda/DriverApi.h"

#include <cuda.h>
#include <type_traits>

using namespace hyb::rt::cuda;

static_assert(int(kSuccess) == CUDA_SUCCESS &&
              int(kOutOfMemory) == CUDA_ERROR_OUT_OF_MEMORY &&
              int(kStubLibrary) == CUDA_ERROR_STUB_LIBRARY &&
              int(kNoDevice) == CUDA_ERROR_NO_DEVICE &&
              int(kInvalidDevice) == CUDA_ERROR_INVALID_DEVICE &&
              int(kNoBinaryForGpu) == CUDA_ERROR_NO_BINARY_FOR_GPU &&
              int(kInvalidPtx) == CUDA_ERROR_INVALID_PTX &&
              int(kUnsupportedPtxVersion) ==
                  CUDA_ERROR_UNSUPPORTED_PTX_VERSION &&
              int(kNotFound) == CUDA_ERROR_NOT_FOUND &&
              int(kIllegalAddress) == CUDA_ERROR_ILLEGAL_ADDRESS &&
              int(kLaunchOutOfResources) ==
                  CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES &&
              int(kLaunchFailed) == CUDA_ERROR_LAUNCH_FAILED);

static_assert(
    int(kMaxThreadsPerBlock) == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK &&
    int(kCapabilityMajor) == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR &&
    int(kCapabilityMinor) == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR &&
    int(kMaxSharedPerBlockOptIn) ==
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);

static_assert(int(kFunctionMaxThreads) ==
                  CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK &&
              int(kFunctionStaticShared) ==
                  CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES &&
              int(kFunctionRegisters) == CU_FUNC_ATTRIBUTE_NUM_REGS &&
              int(kFunctionMaxDynamicShared) ==
                  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);

static_assert(int(kJitInfoLog) == CU_JIT_INFO_LOG_BUFFER &&
              int(kJitInfoLogSize) == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES &&
              int(kJitErrorLog) == CU_JIT_ERROR_LOG_BUFFER &&
              int(kJitErrorLogSize) == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);

static_assert(int(kTensorF16) == CU_TENSOR_MAP_DATA_TYPE_FLOAT16 &&
              int(kTensorBf16) == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 &&
              int(kSwizzle128) == CU_TENSOR_MAP_SWIZZLE_128B &&
              int(kPromote256) == CU_TENSOR_MAP_L2_PROMOTION_L2_256B &&
              sizeof(TensorMap) == sizeof(CUtensorMap) &&
              alignof(TensorMap) == 64);

static_assert(kHostAllocPortable == CU_MEMHOSTALLOC_PORTABLE &&
              kStreamNonBlocking == CU_STREAM_NON_BLOCKING &&
              kCaptureThreadLocal == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);

static_assert(sizeof(Pointer) == sizeof(CUdeviceptr) &&
              std::is_same_v<Pointer, CUdeviceptr>);

static_assert(sizeof(GraphEdge) == sizeof(CUgraphEdgeData) &&
              offsetof(GraphEdge, fromPort) ==
                  offsetof(CUgraphEdgeData, from_port) &&
              offsetof(GraphEdge, toPort) ==
                  offsetof(CUgraphEdgeData, to_port) &&
              offsetof(GraphEdge, type) == offsetof(CUgraphEdgeData, type) &&
              kPortProgrammatic == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC &&
              kEdgeProgrammatic == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);

static_assert(sizeof(KernelNode) == sizeof(CUDA_KERNEL_NODE_PARAMS_v2) &&
              offsetof(KernelNode, function) ==
                  offsetof(CUDA_KERNEL_NODE_PARAMS_v2, func) &&
              offsetof(KernelNode, gridX) ==
                  offsetof(CUDA_KERNEL_NODE_PARAMS_v2, gridDimX) &&
              offsetof(KernelNode, blockX) ==
                  offsetof(CUDA_KERNEL_NODE_PARAMS_v2, blockDimX) &&
              offsetof(KernelNode, sharedBytes) ==
                  offsetof(CUDA_KERNEL_NODE_PARAMS_v2, sharedMemBytes) &&
              offsetof(KernelNode, parameters) ==
                  offsetof(CUDA_KERNEL_NODE_PARAMS_v2, kernelParams) &&
              offsetof(KernelNode, extra) ==
                  offsetof(CUDA_KERNEL_NODE_PARAMS_v2, extra) &&
              offsetof(KernelNode, context) ==
                  offsetof(CUDA_KERNEL_NODE_PARAMS_v2, ctx));
