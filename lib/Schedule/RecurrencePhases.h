//===- RecurrencePhases.h - recurrences with all chunks at once -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_SCHEDULE_RECURRENCEPHASES_H
#define HYBRID_LIB_SCHEDULE_RECURRENCEPHASES_H

#include "Scheduler.h"

namespace hybrid {

/// The launches of one recurrence or of its adjoint, in phases: a short walk
/// along the chunks carries the state, everything else is a point per chunk.
class RecurrencePhases {
public:
  /// `shape` is that of the operation; chunks and tiles are chosen here.
  RecurrencePhases(Scheduler &scheduler, mlir::Operation *op,
                   const tile::RecurrenceShape &shape);

  /// Whether the target takes the forward or the adjoint of `shape` this way.
  static bool fit(const TargetTraits &target,
                  const tile::RecurrenceShape &shape, bool isAdjoint);

  /// `operands` are query, key, value, segments, [decay], [beta]; `state` is
  /// null without one, else flat. Gives the output, and the state after.
  llvm::SmallVector<mlir::Value> forward(mlir::OpBuilder &builder,
                                         mlir::ValueRange operands,
                                         mlir::Value state,
                                         mlir::Type outputType);
  /// The gradients of the operands, as `types` says or, where they are sums, in
  /// f32.
  llvm::SmallVector<mlir::Value> backward(mlir::OpBuilder &builder,
                                          mlir::ValueRange operands,
                                          mlir::Value dOutput,
                                          mlir::TypeRange types);

  int64_t chunk() const { return shape.chunkSize(); }

private:
  using Build = tile::ProgramOp (*)(mlir::OpBuilder &, mlir::Location,
                                    const tile::RecurrenceShape &);
  mlir::ValueRange launch(mlir::OpBuilder &builder, llvm::StringRef variant,
                          Build build, const tile::RecurrenceShape &made,
                          mlir::ValueRange inputs,
                          llvm::ArrayRef<mlir::Type> outputs,
                          llvm::ArrayRef<int64_t> ties = {});
  /// A walk over `inputs` and, where it is not null, a state that it
  /// overwrites: the chunk buffers, then the state.
  llvm::SmallVector<mlir::Value> walk(mlir::OpBuilder &builder,
                                      llvm::StringRef variant, Build build,
                                      mlir::ValueRange inputs,
                                      mlir::Value state,
                                      llvm::ArrayRef<mlir::Type> buffers);

  Scheduler &scheduler;
  mlir::Operation *op;
  /// Of what does not depend on value columns, of the points after the walks,
  /// and of the walks.
  tile::RecurrenceShape shape, wideShape, walkShape;
};

} // namespace hybrid

#endif // HYBRID_LIB_SCHEDULE_RECURRENCEPHASES_H
