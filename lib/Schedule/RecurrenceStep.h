//===- RecurrenceStep.h - recurrences that make their operands -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_SCHEDULE_RECURRENCESTEP_H
#define HYBRID_LIB_SCHEDULE_RECURRENCESTEP_H

#include "Scheduler.h"
#include "hybrid/Tile/Families/Recurrence.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace hybrid {

tile::RecurrenceShape recurrenceShape(RecurrenceOp op);

/// The launch of a step: `inputs` and the initial state, in place, if there is
/// one. Gives the output and the state after.
llvm::SmallVector<mlir::Value>
launchRecurrence(Scheduler &scheduler, mlir::OpBuilder &builder,
                 RecurrenceOp op, tile::ProgramOp program,
                 llvm::SmallVector<mlir::Value> inputs);

/// Replaces every recurrence with a state, in front of whose operands row-wise
/// operations stand, by one launch that does these too where the call has a few
/// rows, else by what strategies choose for each. Does nothing for targets and
/// entries without such steps.
mlir::LogicalResult scheduleRecurrenceSteps(Scheduler &scheduler,
                                            mlir::func::FuncOp function);

} // namespace hybrid

#endif // HYBRID_LIB_SCHEDULE_RECURRENCESTEP_H
