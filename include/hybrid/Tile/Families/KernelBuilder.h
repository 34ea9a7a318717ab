//===- KernelBuilder.h - how family builders write tile programs ---------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TILE_FAMILIES_KERNELBUILDER_H
#define HYBRID_TILE_FAMILIES_KERNELBUILDER_H

#include "hybrid/Tile/TileOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace hybrid::tile {

/// The six symbols of a call as affine expressions, for grids.
struct Symbols {
  explicit Symbols(mlir::MLIRContext *context);
  mlir::AffineExpr tokens, segments, longest, slots, context, depth;
};

/// A row range of the packed stream and where its state lives, all `index`.
struct Segment {
  mlir::Value begin, end, slot;
  /// Position of row `begin`.
  mlir::Value first;
};

/// Writes the body of one `tile.program`. The methods are the ops, with types
/// taken from the operands; arithmetic works on scalars and on tiles alike.
/// Every float is f32: what is loaded from a view of a narrower type is
/// widened, what is stored to one is rounded to nearest even.
class KernelBuilder {
public:
  using Values = mlir::SmallVector<mlir::Value>;
  using Shape = llvm::ArrayRef<int64_t>;
  using LoopBody =
      llvm::function_ref<Values(mlir::Value index, mlir::ValueRange carried)>;

  /// Creates the program at the insertion point of `builder`; further ops go
  /// into its body.
  KernelBuilder(mlir::OpBuilder &builder, mlir::Location loc,
                llvm::StringRef name, llvm::ArrayRef<mlir::AffineExpr> grid,
                llvm::ArrayRef<Order> order, llvm::ArrayRef<mlir::Type> views);

  /// Ends the body and returns the program.
  ProgramOp finish();

  mlir::ImplicitLocOpBuilder &ops() { return b; }
  mlir::Value view(unsigned n) { return program.getViews()[n]; }
  unsigned numViews() { return program.getViews().size(); }

  // Types.
  /// A null `element` is f32.
  static mlir::Type viewType(mlir::MLIRContext *context, Shape shape,
                             mlir::Type element = {});
  static mlir::Type viewTypeI32(mlir::MLIRContext *context, Shape shape);
  /// `!tile.view<?x4xi32>` and `!tile.view<?xi32>`: what `!hybrid.segments` is
  /// to a program.
  static llvm::SmallVector<mlir::Type, 2>
  segmentViewTypes(mlir::MLIRContext *context);
  mlir::RankedTensorType tileType(Shape shape) const;

  // Constants.
  mlir::Value idx(int64_t value);
  mlir::Value i32(int64_t value);
  mlir::Value f32(double value);
  mlir::Value full(double value, Shape shape);
  mlir::Value zeros(Shape shape) { return full(0.0, shape); }
  mlir::Value tableI32(llvm::ArrayRef<int64_t> values);

  // Place of this program, sizes, segments.
  mlir::Value id(unsigned dim);
  mlir::Value dim(mlir::Value view, unsigned n);
  Segment segment(mlir::Value table, mlir::Value index);
  /// The last row of a segment; an empty one begins at its end, where a limit
  /// `segment.end` of what is loaded gives zeros.
  mlir::Value lastRow(const Segment &segment);

  // Arithmetic by element type: index and i32 are signed.
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  /// Quotient of floats; floor of non-negative integers.
  mlir::Value div(mlir::Value a, mlir::Value b);
  mlir::Value rem(mlir::Value a, mlir::Value b);
  mlir::Value ceilDiv(mlir::Value a, mlir::Value b);
  mlir::Value min(mlir::Value a, mlir::Value b);
  mlir::Value max(mlir::Value a, mlir::Value b);
  mlir::Value neg(mlir::Value a);
  mlir::Value exp(mlir::Value a);
  mlir::Value log(mlir::Value a);
  mlir::Value rsqrt(mlir::Value a);
  mlir::Value lt(mlir::Value a, mlir::Value b);
  mlir::Value le(mlir::Value a, mlir::Value b);
  mlir::Value ge(mlir::Value a, mlir::Value b) { return le(b, a); }
  mlir::Value gt(mlir::Value a, mlir::Value b) { return lt(b, a); }
  mlir::Value eq(mlir::Value a, mlir::Value b);
  mlir::Value both(mlir::Value a, mlir::Value b);
  mlir::Value either(mlir::Value a, mlir::Value b);
  /// Of i32: exclusive or; a shift that fills with zeros.
  mlir::Value bitXor(mlir::Value a, mlir::Value b);
  mlir::Value shiftRight(mlir::Value a, mlir::Value bits);
  mlir::Value select(mlir::Value mask, mlir::Value a, mlir::Value b);
  mlir::Value toI32(mlir::Value index);
  mlir::Value toIndex(mlir::Value i32);
  mlir::Value toF32(mlir::Value i32);
  /// `value` rounded to nearest even, in f32.
  mlir::Value rounded(mlir::Value value, mlir::Type element);

  // Shapes.
  mlir::Value splat(mlir::Value scalar, Shape shape);
  mlir::Value iota(unsigned dim, Shape shape);
  mlir::Value broadcast(mlir::Value tile, Shape shape);
  mlir::Value reshape(mlir::Value tile, Shape shape);
  mlir::Value transpose(mlir::Value matrix);
  mlir::Value slice(mlir::Value tile, unsigned dim, int64_t offset,
                    int64_t size);
  mlir::Value concat(mlir::ValueRange tiles, unsigned dim);
  /// One element of a tile.
  mlir::Value extract(mlir::Value tile, mlir::ValueRange indices);

  // Whole tiles.
  mlir::Value sum(mlir::Value tile, unsigned dim);
  mlir::Value maximum(mlir::Value tile, unsigned dim);
  mlir::Value dot(mlir::Value a, mlir::Value b, mlir::Value acc,
                  bool transposeA = false, bool transposeB = false);
  mlir::Value prefixSum(mlir::Value tile, unsigned dim, bool reverse = false);
  mlir::Value unitLowerInverse(mlir::Value matrix);

  // Global memory; see tile.load for indices, dims and limits.
  mlir::Value load(mlir::Value view, mlir::ValueRange indices,
                   llvm::ArrayRef<int64_t> dims, Shape shape,
                   mlir::ValueRange limits = {});
  /// As memory has it: what is asked for long before it is used is made f32 by
  /// `widened` there.
  mlir::Value loadStored(mlir::Value view, mlir::ValueRange indices,
                         llvm::ArrayRef<int64_t> dims, Shape shape,
                         mlir::ValueRange limits = {});
  mlir::Value widened(mlir::Value value);
  mlir::Value narrowed(mlir::Value value, mlir::Type element);
  void store(mlir::Value tile, mlir::Value view, mlir::ValueRange indices,
             llvm::ArrayRef<int64_t> dims, mlir::ValueRange limits = {});
  AccumulateOp accumulate(mlir::Value tile, mlir::Value view,
                          mlir::ValueRange indices,
                          llvm::ArrayRef<int64_t> dims,
                          mlir::ValueRange limits = {}, mlir::Value first = {});
  mlir::Value loadRows(mlir::Value view, mlir::ValueRange indices,
                       mlir::Value rows, mlir::Value mask,
                       llvm::ArrayRef<int64_t> dims, Shape shape);
  void storeRows(mlir::Value tile, mlir::Value view, mlir::ValueRange indices,
                 mlir::Value rows, mlir::Value mask,
                 llvm::ArrayRef<int64_t> dims);
  mlir::Value loadScalar(mlir::Value view, mlir::ValueRange indices);
  void storeScalar(mlir::Value value, mlir::Value view,
                   mlir::ValueRange indices);

  // Control.
  /// `for i = lower to upper step step`; returns what the last iteration gave.
  Values loop(mlir::Value lower, mlir::Value upper, int64_t step,
              mlir::ValueRange carried, LoopBody body);
  void when(mlir::Value condition, llvm::function_ref<void()> body);
  Values choose(mlir::Value condition, llvm::function_ref<Values()> then,
                llvm::function_ref<Values()> otherwise);

  /// Gives the op behind `value` the name by which schedules know it.
  mlir::Value named(llvm::StringRef name, mlir::Value value);
  void named(llvm::StringRef name, mlir::Operation *op);

protected:
  mlir::Value forView(mlir::Value value, mlir::Value view);
  /// What has the name of a value: of a widened block its load.
  static mlir::Operation *namedOp(mlir::Value value);

private:
  mlir::Value cmp(mlir::arith::CmpIPredicate integer,
                  mlir::arith::CmpFPredicate real, mlir::Value a,
                  mlir::Value b);

  mlir::ImplicitLocOpBuilder b;
  ProgramOp program;
};

} // namespace hybrid::tile

#endif // HYBRID_TILE_FAMILIES_KERNELBUILDER_H
