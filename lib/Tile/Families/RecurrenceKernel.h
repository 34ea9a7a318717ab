//===- RecurrenceKernel.h - what the programs of the family share --------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arguments, the span of tokens a program walks, and bounded loads.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TILE_FAMILIES_RECURRENCEKERNEL_H
#define HYBRID_TILE_FAMILIES_RECURRENCEKERNEL_H

#include "RecurrenceEquations.h"

namespace hybrid::tile::recurrence {

/// Types of the arguments, in the order in which programs take them.
class Arguments {
public:
  Arguments(mlir::MLIRContext *context) : context(context) {}

  /// An activation [tokens, sizes...]: contiguous but for the stride of a
  /// token, so that a slice of a wider buffer is taken as it is.
  /// A null `element` is f32.
  void activation(ArrayRef<int64_t> sizes, mlir::Type element = {});
  /// A parameter or its gradient.
  void weight(ArrayRef<int64_t> sizes) {
    list.push_back(KernelBuilder::viewType(context, sizes));
  }
  /// A contiguous buffer [?, sizes...].
  void buffer(ArrayRef<int64_t> sizes, mlir::Type element = {});
  /// Segment table and token segments.
  void segments();
  /// query, key, value, segments, [decay], [beta]: the operands all programs
  /// have.
  void operands(const RecurrenceShape &shape);

  void view(mlir::Type type) { list.push_back(type); }

  ArrayRef<mlir::Type> types() const { return list; }

private:
  mlir::MLIRContext *context;
  mlir::SmallVector<mlir::Type> list;
};

/// The rows of one segment that a program walks, with state only before
/// `outputBegin` and with outputs after. Rows count from the start of the
/// packed stream.
struct Span {
  Segment segment;
  Value begin, outputBegin, end;
  /// Second index of the state, after the slot. Rows of K at or past the limits
  /// are not read (the state starts as zero) and not written; null is K.
  Value stateRow;
  Value loadLimit, storeLimit;
};

/// Outermost grid dim: one point per segment.
struct Grid {
  mlir::SmallVector<mlir::AffineExpr> sizes;
  mlir::SmallVector<Order> order;
};

class Kernel {
public:
  /// Starts the program and binds the operands all programs have; `next()`
  /// gives the arguments after them, one by one.
  /// A program that makes its operands has `leaves` views in their place,
  /// before those of the segments.
  Kernel(mlir::OpBuilder &builder, mlir::Location loc, StringRef name,
         const Grid &grid, const Arguments &arguments,
         const RecurrenceShape &shape, unsigned leaves = 0);

  Value next() { return e.view(nextView++); }
  ProgramOp finish();

  /// Window chains that touch the longest segment, at any first position.
  static mlir::AffineExpr chainCount(mlir::MLIRContext *context,
                                     const RecurrenceShape &shape);

  /// The whole segment, with the state row of `head`.
  Span segmentSpan(Value segment);
  /// The part of the segment that window chain number `turn` of this call
  /// covers. Without a state to keep (`hasState`), a chain that gives no output
  /// is empty.
  Span chainSpan(Value segment, Value turn);

  Value loadState(Value view, const Span &span);
  void storeState(Value state, Value view, const Span &span);

  /// Rows [row, row + chunk) of an activation of one head; zero from `limit`
  /// on.
  Value loadRows(StringRef name, Value view, Value row, Value head,
                 int64_t width, Value limit, int64_t rows = 0);
  void storeRows(StringRef name, Value tile, Value view, Value row, Value head,
                 Value limit);
  /// The same for the value columns of this point.
  Value loadValueRows(StringRef name, Value view, Value row, Value head,
                      Value limit, int64_t rows = 0);
  void storeValueRows(StringRef name, Value tile, Value view, Value row,
                      Value head, Value limit);
  Value loadBeta(Value row, Value limit, int64_t rows = 0);
  /// s·Q of a chunk.
  Value loadQuery(Value row, Value limit);
  Chunk loadChunk(Value row, Value limit, bool withQuery);

  Emitter e;
  Equations equations;
  const RecurrenceShape &shape;
  Value query, key, value, table, tokenSegment, decay, beta;
  /// The head of the current program, and the key/value head it reads.
  Value head, kvHead;
  Value zero;
  /// The first of the value columns that this point works on.
  Value firstColumn;

private:
  Value loadBlock(StringRef name, Value view, mlir::ValueRange base,
                  int64_t width, Value limit, int64_t rows);

  unsigned nextView;
};

/// Carries the state over the rows [from, to) and gives the state after them. A
/// null `output` asks for no outputs.
using Walk = llvm::function_ref<Value(Kernel &, Value from, Value to,
                                      Value state, Value output)>;

/// The frame of forward and step: one point per segment, head and block of
/// value columns, or per window chain of them. Where there are `leaves` they
/// stand in place of the operands.
ProgramOp buildWalk(mlir::OpBuilder &builder, mlir::Location loc,
                    StringRef name, const RecurrenceShape &shape, Walk walk,
                    const Arguments *leaves = nullptr);

/// Carries the state over the chunks of the rows [from, to) and gives the state
/// after them. A null `output` asks for no outputs.
Value walkChunks(Kernel &kernel, Value from, Value to, Value state,
                 Value output);

} // namespace hybrid::tile::recurrence

#endif // HYBRID_TILE_FAMILIES_RECURRENCEKERNEL_H
