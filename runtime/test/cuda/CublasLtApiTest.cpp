//===- CublasLtApiTest.cpp - Our declarations against cublasLt.h ---------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Built only where the headers of cuBLAS are. Nothing runs: what is compared is
// known to the compiler.
//
//===----------------------------------------------------------------------===//

#include "cuda/CublasLtApi.h"

#include <cublasLt.h>
#include <type_traits>

namespace lt = hyb::rt::cuda::lt;

static_assert(int(lt::kSuccess) == CUBLAS_STATUS_SUCCESS &&
              int(lt::kExecutionFailed) == CUBLAS_STATUS_EXECUTION_FAILED &&
              int(lt::kNotSupported) == CUBLAS_STATUS_NOT_SUPPORTED);

static_assert(int(lt::kF32) == CUDA_R_32F && int(lt::kF16) == CUDA_R_16F &&
              int(lt::kBf16) == CUDA_R_16BF &&
              int(lt::kComputeF32) == CUBLAS_COMPUTE_32F &&
              int(lt::kAsIs) == CUBLAS_OP_N &&
              int(lt::kTransposed) == CUBLAS_OP_T);

static_assert(
    int(lt::kTransposeA) == CUBLASLT_MATMUL_DESC_TRANSA &&
    int(lt::kTransposeB) == CUBLASLT_MATMUL_DESC_TRANSB &&
    int(lt::kMaxWorkspaceBytes) == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES &&
    int(lt::kReductionSchemes) == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK &&
    int(lt::kAlignmentA) == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES &&
    int(lt::kAlignmentB) == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES &&
    int(lt::kAlignmentC) == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES &&
    int(lt::kAlignmentD) == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES &&
    int(lt::kReduceInComputeType) == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);

static_assert(sizeof(lt::Algorithm) == sizeof(cublasLtMatmulAlgo_t) &&
              sizeof(lt::Choice) == sizeof(cublasLtMatmulHeuristicResult_t) &&
              offsetof(lt::Choice, algorithm) ==
                  offsetof(cublasLtMatmulHeuristicResult_t, algo) &&
              offsetof(lt::Choice, workspaceBytes) ==
                  offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) &&
              offsetof(lt::Choice, status) ==
                  offsetof(cublasLtMatmulHeuristicResult_t, state));

namespace {

/// The numbers of bits of a type that are passed in a register: a pointer for a
/// pointer, a number of the size for a number.
template <typename T>
constexpr int kindOf =
    std::is_pointer_v<T>
        ? 1
        : int(2 * sizeof(T)) + int(std::is_floating_point_v<T>);

template <typename Ours, typename Theirs> struct Same : std::false_type {};
template <typename Ours, typename... OurArguments, typename Theirs,
          typename... TheirArguments>
struct Same<Ours (*)(OurArguments...), Theirs (*)(TheirArguments...)> {
  static constexpr bool of() {
    if constexpr (sizeof...(OurArguments) != sizeof...(TheirArguments))
      return false;
    else
      return kindOf<Ours> == kindOf<Theirs> &&
             ((kindOf<OurArguments> == kindOf<TheirArguments>) && ...);
  }
};

} // namespace

// Every function takes and gives what is declared, in registers of the kind.
#define HYB_CHECK(name, symbol, result, arguments)                             \
  static_assert(                                                               \
      Same<decltype(lt::Functions::name), decltype(&HYB_NAMED_##name)>::of(),  \
      symbol);
#define HYB_NAMED_version cublasLtGetVersion
#define HYB_NAMED_statusName cublasLtGetStatusName
#define HYB_NAMED_create cublasLtCreate
#define HYB_NAMED_destroy cublasLtDestroy
#define HYB_NAMED_descriptionCreate cublasLtMatmulDescCreate
#define HYB_NAMED_descriptionSet cublasLtMatmulDescSetAttribute
#define HYB_NAMED_descriptionDestroy cublasLtMatmulDescDestroy
#define HYB_NAMED_matrixCreate cublasLtMatrixLayoutCreate
#define HYB_NAMED_matrixDestroy cublasLtMatrixLayoutDestroy
#define HYB_NAMED_preferenceCreate cublasLtMatmulPreferenceCreate
#define HYB_NAMED_preferenceSet cublasLtMatmulPreferenceSetAttribute
#define HYB_NAMED_preferenceDestroy cublasLtMatmulPreferenceDestroy
#define HYB_NAMED_choose cublasLtMatmulAlgoGetHeuristic
#define HYB_NAMED_multiply cublasLtMatmul
HYB_CUBLASLT_FUNCTIONS(HYB_CHECK)
