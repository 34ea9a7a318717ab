//===- CublasLt.h - Products by cuBLASLt, opened at run time ----*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CUDA_CUBLASLT_H
#define HYBRID_RUNTIME_CUDA_CUBLASLT_H

#include "core/Launch.h"
#include "core/ProductLibrary.h"
#include "cuda/CublasLtApi.h"
#include "cuda/CudaContext.h"
#include "cuda/Workspace.h"

#include <map>
#include <mutex>

namespace hyb::rt::cuda {

/// The functions of the library, `libcublasLt.so.13` or `.12`, or the file that
/// the environment variable HYBRID_CUBLASLT names, and its handle for one
/// context.
class CublasLt : public lt::Functions {
public:
  static constexpr int64_t kWorkspaceBytes = kProductWorkspaceBytes;

  static Result<std::shared_ptr<const CublasLt>>
  open(std::shared_ptr<CudaContext> context);
  ~CublasLt();

  lt::Handle handle() const { return owned; }
  const CudaContext &context() const { return *place; }
  /// "cuBLASLt 13.1.1"
  const std::string &title() const { return label; }
  /// An error if `code` is one: "cuda:0: cuBLASLt 13.1.1 cannot `action`:
  /// NAME".
  Status check(int code, const std::string &action) const;

private:
  Status resolve();

  std::shared_ptr<CudaContext> place;
  void *library = nullptr;
  lt::Handle owned = nullptr;
  std::string label = "cuBLASLt";
};

/// A product of one shape in the library's words, with its algorithm.
class CublasLtProduct : public LibraryProduct {
public:
  /// Null where the library has no algorithm for the shape.
  static Result<std::shared_ptr<const CublasLtProduct>>
  create(std::shared_ptr<const CublasLt> library, const ProductShape &shape);
  ~CublasLtProduct() override;

  /// Puts it into a stream: views of a, b and c. The library's status.
  int run(const KernelView *views, void *workspace, Stream stream) const;
  const CublasLt &library() const { return *owner; }

private:
  CublasLtProduct(std::shared_ptr<const CublasLt> library,
                  const ProductShape &shape);
  Status describe(const ProductShape &shape);
  /// False where there is none.
  Result<bool> chooseAlgorithm(const ProductShape &shape);

  std::shared_ptr<const CublasLt> owner;
  lt::Description description = nullptr;
  /// As the library counts them: its columns are our rows, so its first factor
  /// is our second.
  lt::Matrix first = nullptr, second = nullptr, result = nullptr;
  lt::Algorithm algorithm = {};
  bool accumulate;
};

/// The library as the core sees it. Algorithms are looked for once per shape.
class CublasLtProducts : public ProductLibrary {
public:
  CublasLtProducts(std::shared_ptr<const CublasLt> library,
                   ProductChoice wanted)
      : library(std::move(library)), wanted(wanted) {}

  /// Whether it is given products of a kernel with factors of a type.
  /// Automatically not those of kernels with tensor maps, which are made for
  /// exactly one chip, nor those in f32, which it computes without tensor cores
  /// and kernels with them.
  static bool mayCompute(const PlanKernel &kernel, ElementType type,
                         ProductChoice wanted);

  Result<std::shared_ptr<const LibraryProduct>>
  choose(const PlanKernel &kernel, const ProductShape &shape) override;

private:
  /// Shapes that are remembered: more than the layers of a model have for all
  /// lengths of call that graphs are kept for.
  static constexpr size_t kMostShapes = 4096;

  std::shared_ptr<const CublasLt> library;
  ProductChoice wanted;
  std::mutex turn;
  std::map<ProductShape, std::shared_ptr<const LibraryProduct>> known;
};

} // namespace hyb::rt::cuda

#endif // HYBRID_RUNTIME_CUDA_CUBLASLT_H
