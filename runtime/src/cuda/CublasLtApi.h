//===- CublasLtApi.h - What is used of cuBLASLt -----------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declarations of our own, as those of the driver (DriverApi.h). Names, numbers
// and layouts are those of NVIDIA's documentation of cuBLASLt 12 and 13;
// runtime/test/cuda/CublasLtApiTest.cpp compares them with cublasLt.h where
// there is one. Matrices of the library are stored by columns.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CUDA_CUBLASLTAPI_H
#define HYBRID_RUNTIME_CUDA_CUBLASLTAPI_H

#include "cuda/DriverApi.h"

namespace hyb::rt::cuda::lt {

/// cublasStatus_t
enum Status : int { kSuccess = 0, kExecutionFailed = 13, kNotSupported = 15 };

/// cudaDataType, cublasComputeType_t and cublasOperation_t. The compute type is
/// the one that rounds no operand: TF32 and emulation have others.
enum DataType : int { kF32 = 0, kF16 = 2, kBf16 = 14 };
enum ComputeType : int { kComputeF32 = 68 };
enum Operation : int { kAsIs = 0, kTransposed = 1 };

/// cublasLtMatmulDescAttributes_t, of int32_t values.
enum DescriptionAttribute : int { kTransposeA = 3, kTransposeB = 4 };

/// cublasLtMatmulPreferenceAttributes_t: the first a size_t, the others of
/// uint32_t values.
enum PreferenceAttribute : int {
  kMaxWorkspaceBytes = 1,
  kReductionSchemes = 3,
  kAlignmentA = 5,
  kAlignmentB = 6,
  kAlignmentC = 7,
  kAlignmentD = 8
};

/// cublasLtReductionScheme_t, as a mask: sums of parts in the compute type, in
/// one order.
enum ReductionScheme : uint32_t { kReduceInComputeType = 2 };

using Handle = struct HandleTag *;
using Description = struct DescriptionTag *;
using Matrix = struct MatrixTag *;
using Preference = struct PreferenceTag *;

/// cublasLtMatmulAlgo_t
struct Algorithm {
  uint64_t words[8];
};

/// cublasLtMatmulHeuristicResult_t
struct Choice {
  Algorithm algorithm;
  size_t workspaceBytes;
  int status;
  float waves;
  int reserved[4];
};

/// Every function of the library that is used: our name, its symbol, its result
/// and its arguments.
#define HYB_CUBLASLT_FUNCTIONS(F)                                              \
  F(version, "cublasLtGetVersion", size_t, ())                                 \
  F(statusName, "cublasLtGetStatusName", const char *, (int status))           \
  F(create, "cublasLtCreate", int, (Handle * handle))                          \
  F(destroy, "cublasLtDestroy", int, (Handle handle))                          \
  F(descriptionCreate, "cublasLtMatmulDescCreate", int,                        \
    (Description * description, int computeType, int scaleType))               \
  F(descriptionSet, "cublasLtMatmulDescSetAttribute", int,                     \
    (Description description, int attribute, const void *value, size_t bytes)) \
  F(descriptionDestroy, "cublasLtMatmulDescDestroy", int,                      \
    (Description description))                                                 \
  F(matrixCreate, "cublasLtMatrixLayoutCreate", int,                           \
    (Matrix * matrix, int type, uint64_t rows, uint64_t columns,               \
     int64_t stride))                                                          \
  F(matrixDestroy, "cublasLtMatrixLayoutDestroy", int, (Matrix matrix))        \
  F(preferenceCreate, "cublasLtMatmulPreferenceCreate", int,                   \
    (Preference * preference))                                                 \
  F(preferenceSet, "cublasLtMatmulPreferenceSetAttribute", int,                \
    (Preference preference, int attribute, const void *value, size_t bytes))   \
  F(preferenceDestroy, "cublasLtMatmulPreferenceDestroy", int,                 \
    (Preference preference))                                                   \
  F(choose, "cublasLtMatmulAlgoGetHeuristic", int,                             \
    (Handle handle, Description description, Matrix a, Matrix b, Matrix c,     \
     Matrix d, Preference preference, int wanted, Choice *choices,             \
     int *found))                                                              \
  F(multiply, "cublasLtMatmul", int,                                           \
    (Handle handle, Description description, const void *alpha, const void *a, \
     Matrix matrixA, const void *b, Matrix matrixB, const void *beta,          \
     const void *c, Matrix matrixC, void *d, Matrix matrixD,                   \
     const Algorithm *algorithm, void *workspace, size_t workspaceBytes,       \
     Stream stream))

struct Functions {
#define HYB_CUBLASLT_MEMBER(name, symbol, result, arguments)                   \
  result(*name) arguments = nullptr;
  HYB_CUBLASLT_FUNCTIONS(HYB_CUBLASLT_MEMBER)
#undef HYB_CUBLASLT_MEMBER
};

} // namespace hyb::rt::cuda::lt

#endif // HYBRID_RUNTIME_CUDA_CUBLASLTAPI_H
