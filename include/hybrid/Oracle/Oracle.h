//===- Oracle.h - graph functions evaluated in fp64 -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The oracle says what a graph function means: every operation by its plain
// definition (dense masks, recurrences token by token, windows one at a time),
// in fp64, with no blocking and no code shared with the kernels. What kernels
// compute is compared with it.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_ORACLE_ORACLE_H
#define HYBRID_ORACLE_ORACLE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/LogicalResult.h"

#include <vector>

namespace hybrid::oracle {

/// A dense tensor in row-major order. Ids and labels are held as doubles too.
struct Tensor {
  llvm::SmallVector<int64_t> shape;
  std::vector<double> data;

  Tensor() = default;
  /// Zeros.
  explicit Tensor(llvm::ArrayRef<int64_t> shape);
  Tensor(llvm::ArrayRef<int64_t> shape, std::vector<double> data);

  int64_t rank() const { return shape.size(); }
  int64_t dim(int64_t index) const { return shape[index]; }
  int64_t size() const { return data.size(); }

  /// The element at `indices`, one per dimension.
  template <typename... Index> double &operator()(Index... indices) {
    return data[offset({static_cast<int64_t>(indices)...})];
  }
  template <typename... Index> double operator()(Index... indices) const {
    return data[offset({static_cast<int64_t>(indices)...})];
  }

private:
  int64_t offset(std::initializer_list<int64_t> indices) const {
    assert(indices.size() == shape.size() && "one index per dimension");
    int64_t flat = 0, d = 0;
    for (int64_t index : indices) {
      assert(index >= 0 && index < shape[d] && "index outside the tensor");
      flat = flat * shape[d++] + index;
    }
    return flat;
  }
};

/// Rows [begin, end) of the packed stream belong together, continue the state
/// of `slot` and stand at the positions from `position` on.
struct Segment {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t slot = 0;
  int64_t position = 0;

  int64_t length() const { return end - begin; }
};

/// What a call of an entry point is given beside its tensors.
struct Call {
  std::vector<Segment> segments;
  /// Sizes of the state object: slots, token capacity of a slot, rollback
  /// depth.
  int64_t slots = 0;
  int64_t context = 0;
  int64_t depth = 0;
  /// The largest chunk that the state was made for, which is `longest` in the
  /// sizes of states; 0: the longest segment of this call.
  int64_t chunk = 0;

  int64_t tokens() const { return segments.empty() ? 0 : segments.back().end; }
  int64_t longest() const;

  /// A call on sequences of the given lengths, one after another, each in the
  /// slot of its index and starting at position 0.
  static Call packed(llvm::ArrayRef<int64_t> lengths);
};

/// The shape that a graph tensor has in `call`.
llvm::SmallVector<int64_t> getShape(mlir::RankedTensorType type,
                                    const Call &call);

/// Every number as the element type of `type` has it, to nearest even.
Tensor roundTo(Tensor tensor, mlir::RankedTensorType type);

/// Evaluates `function` on one tensor per argument; the tensor given for an
/// argument of type `!hybrid.segments` is not read. Fails with an error at the
/// operation when sizes disagree, an id or label is out of range, the segments
/// are malformed, or an operation is not of the graph phase.
mlir::FailureOr<std::vector<Tensor>> evaluate(mlir::func::FuncOp function,
                                              llvm::ArrayRef<Tensor> arguments,
                                              const Call &call);

/// Evaluates one operation of a graph function: a tensor per operand, null for
/// one of type `!hybrid.segments`; a tensor per result.
mlir::FailureOr<std::vector<Tensor>>
evaluate(mlir::Operation *op, llvm::ArrayRef<const Tensor *> operands,
         const Call &call);

/// Sets to 0 what the definition of `op` leaves open in its results: the states
/// of sliding windows that have ended, which nothing reads. Results from two
/// sources can be compared after that.
void clearUnspecified(mlir::Operation *op,
                      llvm::MutableArrayRef<Tensor> results, const Call &call);

} // namespace hybrid::oracle

#endif // HYBRID_ORACLE_ORACLE_H
