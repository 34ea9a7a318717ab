//===- ProductLibrary.h - Products that a library computes ------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Launches that a plan marks as matrix products and nothing else may be
// computed by a library of the device in place of the artefact's kernels.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CORE_PRODUCTLIBRARY_H
#define HYBRID_RUNTIME_CORE_PRODUCTLIBRARY_H

#include "core/ElementType.h"
#include "core/Status.h"

#include <memory>
#include <string>
#include <tuple>

namespace hyb::rt {

struct PlanKernel;

/// Who computes them.
enum class ProductChoice : uint8_t {
  /// The artefact's kernels.
  Compiled,
  /// The library, which must be there.
  Library,
  /// The library where it is there and likely to be faster: in 16-bit types,
  /// where the kernel is not one that was made for exactly this chip.
  Automatic
};

/// c[rows, columns] = op(a) op(b), or += that. Matrices lie row by row; a
/// stride is that from row to row, in elements.
struct ProductShape {
  int64_t rows = 0, columns = 0, depth = 0;
  bool transposeA = false, transposeB = false, accumulate = false;
  /// Of both factors, and of the result: the same or f32.
  ElementType type = ElementType::F32, resultType = ElementType::F32;
  int64_t strideA = 0, strideB = 0, strideC = 0;
  /// Powers of two, at most 256, that divide the addresses.
  int64_t alignA = 1, alignB = 1, alignC = 1;

  bool operator<(const ProductShape &other) const {
    auto all = [](const ProductShape &s) {
      return std::tie(s.rows, s.columns, s.depth, s.transposeA, s.transposeB,
                      s.accumulate, s.type, s.resultType, s.strideA, s.strideB,
                      s.strideC, s.alignA, s.alignB, s.alignC);
    };
    return all(*this) < all(other);
  }
  /// "128 x 64 x 512 in bf16"
  std::string text() const {
    return std::to_string(rows) + " x " + std::to_string(columns) + " x " +
           std::to_string(depth) + " in " + elementTypeName(type);
  }
};

/// What a library decided for a shape; its device's queues know what it is.
struct LibraryProduct {
  explicit LibraryProduct(std::string name) : name(std::move(name)) {}
  virtual ~LibraryProduct() = default;
  /// For people, where a kernel would be named.
  const std::string name;
};

/// May be asked by any thread.
class ProductLibrary {
public:
  virtual ~ProductLibrary() = default;
  /// How to compute a product in place of a kernel, from the first time on the
  /// same for a shape; null where the kernel is to run, an error where the
  /// library must but cannot.
  virtual Result<std::shared_ptr<const LibraryProduct>>
  choose(const PlanKernel &kernel, const ProductShape &shape) = 0;
};

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CORE_PRODUCTLIBRARY_H
