//===- RecurrenceHarness.h - recurrence programs against their definition -===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TEST_UNIT_TILE_RECURRENCEHARNESS_H
#define HYBRID_TEST_UNIT_TILE_RECURRENCEHARNESS_H

#include "hybrid/Tile/Families/Recurrence.h"
#include "hybrid/Tile/Interpreter.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include <functional>
#include <gtest/gtest.h>
#include <optional>

namespace hybrid::tile::test {

/// One row of the segment table, in tokens.
struct Piece {
  int64_t length;
  int64_t slot = 0;
  int64_t first = 0;
};

/// One call: a packed stream and everything a recurrence reads. Rows past the
/// last segment hold NaN.
struct Call {
  Call(RecurrenceShape shape, std::vector<Piece> pieces, int64_t slots = 0);

  int64_t tokens() const;
  int64_t longest() const;
  int64_t begin(size_t piece) const;
  /// Rows [from, from + count) of this call's tokens as a call of one piece per
  /// given piece; for splitting a one-segment call.
  Call part(int64_t from, int64_t count) const;

  RecurrenceShape shape;
  std::vector<Piece> pieces;
  int64_t slots;
  /// decay and beta are there whether or not the shape has them.
  HostBuffer query, key, value, decay, beta, state, dOutput, dFinal;
};

enum class GateKind {
  Ordinary,    ///< from −0.5 to 0
  Alternating, ///< −30, 0, −30, 0, …
  Mixed,       ///< mostly small, now and then −30
  Strong,      ///< −30 throughout
  Zero,
};

struct Fill {
  GateKind gates = GateKind::Ordinary;
  std::optional<double> beta; ///< from 0 to 1 when absent
  unsigned seed = 1;
};
/// Random operands; keys have unit length, as in all layers of the family.
void fill(Call &call, const Fill &how = {});

/// An activation with room for this many tokens and some spare rows, all NaN.
HostBuffer activation(int64_t tokens, std::vector<int64_t> sizes);

struct Gradients {
  HostBuffer query, key, value, decay, beta, initial;
};

Gradients noGradients(const Call &call, double fill);

using BuildProgram = ProgramOp (*)(mlir::OpBuilder &, mlir::Location,
                                   const RecurrenceShape &);
/// A context with what programs are made of, and one built program.
struct Built {
  Built(BuildProgram build, const RecurrenceShape &shape);
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  ProgramOp program;
};

using Arithmetic = InterpreterOptions::Arithmetic;

/// Runs a forward or step program; `call.state` is updated.
HostBuffer run(ProgramOp program, Call &call,
               Arithmetic arithmetic = Arithmetic::f64);
HostBuffer run(BuildProgram build, Call &call,
               Arithmetic arithmetic = Arithmetic::f64);
/// The same function by summary, combine and apply.
HostBuffer runSplit(Call &call, Arithmetic arithmetic = Arithmetic::f64);
Gradients runBackward(const Call &call,
                      Arithmetic arithmetic = Arithmetic::f64);
/// Both by the phases that do all chunks at once.
HostBuffer runPhases(Call &call, Arithmetic arithmetic = Arithmetic::f64);
Gradients runPhasesBackward(const Call &call,
                            Arithmetic arithmetic = Arithmetic::f64);

/// The definition: token by token in double precision, per output position when
/// there is a window. `finalState` is filled where there is a state.
HostBuffer define(const Call &call, HostBuffer *finalState = nullptr);
/// Its adjoint recurrences (mixers.md 1.8).
Gradients defineGradients(const Call &call);

/// Largest difference over the rows of segments, relative to the largest
/// expected magnitude.
double difference(const HostBuffer &got, const HostBuffer &expected,
                  const Call &call);
/// The same over a whole buffer.
double difference(const HostBuffer &got, const HostBuffer &expected);

std::string print(const Call &call);

constexpr double kExact = 1e-9;  ///< relative, f64
constexpr double kSingle = 1e-5; ///< relative, f32

/// A small head, K = 16 and V = 8.
RecurrenceShape smallShape(RecurrenceUpdate update, RecurrenceDecay decay);
/// Outputs, and the state after, are those of the definition.
void expectOutputs(Call call, double tolerance = kExact,
                   Arithmetic arithmetic = Arithmetic::f64,
                   BuildProgram build = buildRecurrenceForward);
using RunBackward = Gradients (*)(const Call &, Arithmetic);
void expectGradients(const Call &call, double tolerance = kExact,
                     Arithmetic arithmetic = Arithmetic::f64,
                     RunBackward run = runBackward);

/// Tests that run for each update and decay.
class EveryRecurrence : public testing::TestWithParam<
                            std::tuple<RecurrenceUpdate, RecurrenceDecay>> {
protected:
  RecurrenceShape shape() const {
    return smallShape(std::get<0>(GetParam()), std::get<1>(GetParam()));
  }
};
inline auto everyRecurrence() {
  return testing::Combine(
      testing::Values(RecurrenceUpdate::Additive, RecurrenceUpdate::Delta),
      testing::Values(RecurrenceDecay::None, RecurrenceDecay::PerHead,
                      RecurrenceDecay::PerChannel));
}

} // namespace hybrid::tile::test

#endif // HYBRID_TEST_UNIT_TILE_RECURRENCEHARNESS_H
