//===- RecurrenceHarness.cpp - programs against their definition ----------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecurrenceHarness.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace hybrid::tile;
using namespace hybrid::tile::test;

static const double kNaN = std::nan("");
/// Rows a buffer holds past the last segment.
static constexpr int64_t kSpareRows = 5;

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

static int64_t rowsOf(const std::vector<Piece> &pieces) {
  int64_t rows = 0;
  for (const Piece &piece : pieces)
    rows += piece.length;
  return rows;
}

HostBuffer hybrid::tile::test::activation(int64_t tokens,
                                          std::vector<int64_t> sizes) {
  sizes.insert(sizes.begin(), tokens + kSpareRows);
  return HostBuffer(sizes, kNaN);
}

static HostBuffer stateBuffer(const RecurrenceShape &shape, int64_t slots) {
  return HostBuffer(
      {slots, shape.rings() * shape.heads, shape.keyDim, shape.valueDim}, 0.0);
}

Call::Call(RecurrenceShape s, std::vector<Piece> p, int64_t n)
    : shape(s), pieces(std::move(p)), slots(n),
      query(activation(rowsOf(pieces), {s.heads, s.keyDim})),
      key(activation(rowsOf(pieces), {s.kvHeads, s.keyDim})),
      value(activation(rowsOf(pieces), {s.kvHeads, s.valueDim})),
      decay(activation(rowsOf(pieces), {s.heads, s.decayDim()})),
      beta(activation(rowsOf(pieces), {s.heads})), state(stateBuffer(s, n)),
      dOutput(activation(rowsOf(pieces), {s.heads, s.valueDim})),
      dFinal(stateBuffer(s, n)) {}

int64_t Call::tokens() const { return rowsOf(pieces); }

int64_t Call::longest() const {
  int64_t most = 0;
  for (const Piece &piece : pieces)
    most = std::max(most, piece.length);
  return most;
}

int64_t Call::begin(size_t piece) const {
  int64_t row = 0;
  for (size_t i = 0; i < piece; ++i)
    row += pieces[i].length;
  return row;
}

Call Call::part(int64_t from, int64_t count) const {
  Piece whole = pieces.front();
  Call result(shape, {{count, whole.slot, whole.first + from}}, slots);
  auto copy = [&](const HostBuffer &source, HostBuffer &target) {
    int64_t width = source.elements().size() / source.shape()[0];
    llvm::copy(source.elements().slice(from * width, count * width),
               target.elements().begin());
  };
  copy(query, result.query);
  copy(key, result.key);
  copy(value, result.value);
  copy(decay, result.decay);
  copy(beta, result.beta);
  result.state = state;
  return result;
}

//===----------------------------------------------------------------------===//
// Random operands
//===----------------------------------------------------------------------===//

static double gate(GateKind kind, int64_t token, std::mt19937 &random) {
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  switch (kind) {
  case GateKind::Ordinary:
    return -0.5 * uniform(random);
  case GateKind::Alternating:
    return token % 2 == 0 ? -30.0 : 0.0;
  case GateKind::Mixed:
    return uniform(random) < 0.1 ? -30.0 : -0.02 * uniform(random);
  case GateKind::Strong:
    return -30.0;
  case GateKind::Zero:
    return 0.0;
  }
  llvm_unreachable("all kinds are handled");
}

void hybrid::tile::test::fill(Call &call, const Fill &how) {
  std::mt19937 random(how.seed);
  std::normal_distribution<double> normal;
  // Values a float holds exactly, so that f32 runs see the same operands.
  auto rounded = [](double x) { return double(float(x)); };
  auto normals = [&](HostBuffer &buffer, int64_t rows) {
    int64_t width =
        buffer.shape()[0] ? buffer.elements().size() / buffer.shape()[0] : 0;
    for (double &x : buffer.elements().take_front(rows * width))
      x = rounded(normal(random));
  };
  const RecurrenceShape &shape = call.shape;
  int64_t tokens = call.tokens();
  normals(call.query, tokens);
  normals(call.key, tokens);
  normals(call.value, tokens);
  normals(call.dOutput, tokens);
  normals(call.state, call.slots);
  normals(call.dFinal, call.slots);
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t h = 0; h < shape.kvHeads; ++h) {
      double square = 1e-6;
      for (int64_t c = 0; c < shape.keyDim; ++c)
        square += call.key({t, h, c}) * call.key({t, h, c});
      for (int64_t c = 0; c < shape.keyDim; ++c)
        call.key({t, h, c}) = rounded(call.key({t, h, c}) / std::sqrt(square));
    }
    for (int64_t h = 0; h < shape.heads; ++h) {
      for (int64_t c = 0; c < shape.decayDim(); ++c)
        call.decay({t, h, c}) = rounded(gate(how.gates, t, random));
      call.beta({t, h}) = rounded(
          how.beta ? *how.beta
                   : std::uniform_real_distribution<double>(0.0, 1.0)(random));
    }
  }
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

Built::Built(BuildProgram build, const RecurrenceShape &shape) {
  context.loadDialect<TileDialect, arith::ArithDialect, math::MathDialect,
                      scf::SCFDialect, tensor::TensorDialect>();
  OpBuilder builder(&context);
  Location loc = builder.getUnknownLoc();
  module = ModuleOp::create(loc);
  builder.setInsertionPointToEnd(module->getBody());
  program = build(builder, loc, shape);
  EXPECT_TRUE(succeeded(mlir::verify(*module)));
}

static HostBuffer segmentTable(const Call &call) {
  HostBuffer table({int64_t(call.pieces.size()), 4}, 0.0);
  for (auto [i, piece] : llvm::enumerate(call.pieces)) {
    int64_t s = i, begin = call.begin(i);
    table({s, 0}) = begin;
    table({s, 1}) = begin + piece.length;
    table({s, 2}) = piece.slot;
    table({s, 3}) = piece.first;
  }
  return table;
}

static SmallVector<int64_t> symbolsOf(const Call &call) {
  return {call.tokens(),
          int64_t(call.pieces.size()),
          call.longest(),
          call.slots,
          0,
          0};
}

namespace {
/// The views of a call in the order of arguments.
class Views {
public:
  Views(const Call &call)
      : table(segmentTable(call)), tokenSegment({call.tokens()}, 0.0) {
    add(call.query);
    add(call.key);
    add(call.value);
    list.push_back(table.view());
    list.push_back(tokenSegment.view());
    if (call.shape.hasDecay())
      add(call.decay);
    if (call.shape.hasBeta())
      add(call.beta);
  }
  void add(const HostBuffer &buffer) {
    list.push_back(const_cast<HostBuffer &>(buffer).view());
  }

  SmallVector<HostView> list;

private:
  HostBuffer table, tokenSegment;
};
} // namespace

static void interpretOrFail(ProgramOp program, ArrayRef<HostView> views,
                            const Call &call, Arithmetic arithmetic) {
  InterpreterOptions options;
  options.arithmetic = arithmetic;
  EXPECT_TRUE(succeeded(interpret(program, views, symbolsOf(call), options)));
}

HostBuffer hybrid::tile::test::run(ProgramOp program, Call &call,
                                   Arithmetic arithmetic) {
  HostBuffer output =
      activation(call.tokens(), {call.shape.heads, call.shape.valueDim});
  Views views(call);
  if (call.shape.hasState)
    views.add(call.state);
  views.add(output);
  interpretOrFail(program, views.list, call, arithmetic);
  EXPECT_TRUE(output.tailIsIntact());
  return output;
}

HostBuffer hybrid::tile::test::run(BuildProgram build, Call &call,
                                   Arithmetic arithmetic) {
  Built built(build, call.shape);
  return run(built.program, call, arithmetic);
}

static int64_t evaluate(AffineMap map, ArrayRef<int64_t> symbols) {
  SmallVector<Attribute> operands, results;
  for (int64_t symbol : symbols)
    operands.push_back(
        IntegerAttr::get(IndexType::get(map.getContext()), symbol));
  EXPECT_TRUE(succeeded(map.constantFold(operands, results)));
  return cast<IntegerAttr>(results[0]).getInt();
}

Gradients hybrid::tile::test::noGradients(const Call &call, double fill) {
  auto like = [&](const HostBuffer &buffer) {
    return HostBuffer(buffer.shape(), fill);
  };
  return {like(call.query), like(call.key),  like(call.value),
          like(call.decay), like(call.beta), like(call.state)};
}

HostBuffer hybrid::tile::test::runSplit(Call &call, Arithmetic arithmetic) {
  const RecurrenceShape &shape = call.shape;
  Built summary(buildRecurrenceSummary, shape),
      combine(buildRecurrenceCombine, shape),
      apply(buildRecurrenceApply, shape);
  int64_t rows =
      evaluate(recurrencePartRows(&summary.context, shape), symbolsOf(call));
  SmallVector<int64_t> mapSizes = {rows};
  llvm::append_range(mapSizes, recurrencePartMap(shape));
  HostBuffer maps(mapSizes, kNaN);
  HostBuffer increments({rows, shape.heads, shape.keyDim, shape.valueDim},
                        kNaN);
  HostBuffer states = increments;
  HostBuffer output = activation(call.tokens(), {shape.heads, shape.valueDim});

  Views summaryViews(call);
  summaryViews.add(maps);
  summaryViews.add(increments);
  interpretOrFail(summary.program, summaryViews.list, call, arithmetic);

  Views operands(call);
  SmallVector<HostView> combineViews = {operands.list[3], operands.list[4],
                                        maps.view(), increments.view()};
  if (shape.hasState)
    combineViews.push_back(call.state.view());
  combineViews.push_back(states.view());
  interpretOrFail(combine.program, combineViews, call, arithmetic);

  operands.add(states);
  operands.add(output);
  interpretOrFail(apply.program, operands.list, call, arithmetic);
  return output;
}

Gradients hybrid::tile::test::runBackward(const Call &call,
                                          Arithmetic arithmetic) {
  const RecurrenceShape &shape = call.shape;
  Built built(buildRecurrenceBackward, shape);
  Gradients gradients = noGradients(call, kNaN);
  Views views(call);
  if (shape.hasState)
    views.add(call.state);
  views.add(call.dOutput);
  if (shape.hasFinalCotangent)
    gradients.initial = call.dFinal;
  if (shape.hasState)
    views.add(gradients.initial);
  views.add(gradients.query);
  views.add(gradients.key);
  views.add(gradients.value);
  if (shape.hasDecay())
    views.add(gradients.decay);
  if (shape.hasBeta())
    views.add(gradients.beta);
  std::vector<HostBuffer> workspaces;
  for (const RecurrenceWorkspace &space :
       recurrenceBackwardWorkspaces(&built.context, shape)) {
    SmallVector<int64_t> sizes = {evaluate(space.rows, symbolsOf(call))};
    llvm::append_range(sizes, space.sizes);
    workspaces.emplace_back(sizes, kNaN);
  }
  for (HostBuffer &workspace : workspaces)
    views.add(workspace);
  interpretOrFail(built.program, views.list, call, arithmetic);
  return gradients;
}

//===----------------------------------------------------------------------===//
// Phases
//===----------------------------------------------------------------------===//

namespace {
/// Programs that hand each other buffers, which hold NaN before.
class Phases {
public:
  Phases(const Call &call, Arithmetic arithmetic)
      : call(call), arithmetic(arithmetic) {}

  std::vector<HostBuffer> make(ArrayRef<RecurrenceWorkspace> list) {
    std::vector<HostBuffer> buffers;
    for (const RecurrenceWorkspace &space : list) {
      SmallVector<int64_t> sizes = {evaluate(space.rows, symbolsOf(call))};
      llvm::append_range(sizes, space.sizes);
      buffers.emplace_back(sizes, kNaN);
    }
    return buffers;
  }
  void run(BuildProgram build, int64_t valueTile,
           ArrayRef<const HostBuffer *> buffers) {
    RecurrenceShape shape = call.shape;
    shape.valueTile = valueTile;
    Built built(build, shape);
    Views views(call);
    for (const HostBuffer *buffer : buffers)
      views.add(*buffer);
    interpretOrFail(built.program, views.list, call, arithmetic);
  }

private:
  const Call &call;
  Arithmetic arithmetic;
};
} // namespace

using Buffers = SmallVector<const HostBuffer *>;

static void append(Buffers &list, ArrayRef<HostBuffer> more) {
  for (const HostBuffer &buffer : more)
    list.push_back(&buffer);
}

HostBuffer hybrid::tile::test::runPhases(Call &call, Arithmetic arithmetic) {
  const RecurrenceShape &shape = call.shape;
  MLIRContext context;
  Phases phases(call, arithmetic);
  std::vector<HostBuffer> prepared = phases.make(recurrencePrepared(
                              &context, shape, /*forAdjoint=*/false)),
                          walked =
                              phases.make(recurrenceWalked(&context, shape));
  HostBuffer output = activation(call.tokens(), {shape.heads, shape.valueDim});
  Buffers walk, outputs;
  append(walk, prepared);
  if (!prepared.empty())
    phases.run(buildRecurrencePrepare, /*valueTile=*/0, walk);
  if (shape.hasState)
    walk.push_back(&call.state);
  append(walk, walked);
  phases.run(buildRecurrenceWalk, shape.valueTile, walk);
  append(outputs, prepared);
  append(outputs, walked);
  outputs.push_back(&output);
  phases.run(buildRecurrenceOutputs, shape.valueTile, outputs);
  EXPECT_TRUE(output.tailIsIntact());
  return output;
}

Gradients hybrid::tile::test::runPhasesBackward(const Call &call,
                                                Arithmetic arithmetic) {
  const RecurrenceShape &shape = call.shape;
  MLIRContext context;
  Phases phases(call, arithmetic);
  std::vector<HostBuffer> prepared = phases.make(recurrencePrepared(
                              &context, shape, /*forAdjoint=*/true)),
                          walked =
                              phases.make(recurrenceWalked(&context, shape)),
                          walkedBack = phases.make(
                              recurrenceWalkedBack(&context, shape));
  size_t ofForward =
      recurrencePrepared(&context, shape, /*forAdjoint=*/false).size();
  Buffers adjoint{&call.dOutput}, walk;
  append(adjoint, prepared);
  if (!prepared.empty())
    phases.run(buildRecurrencePrepareAdjoint, /*valueTile=*/0, adjoint);
  append(walk, ArrayRef(prepared).take_front(ofForward));
  append(walk, walked);
  phases.run(buildRecurrenceWalk, shape.valueTile, walk);
  Buffers back = adjoint;
  append(back, walkedBack);
  phases.run(buildRecurrenceWalkBack, shape.valueTile, back);
  Gradients gradients = noGradients(call, kNaN);
  append(adjoint, walked);
  append(adjoint, walkedBack);
  for (HostBuffer *gradient :
       {&gradients.query, &gradients.key, &gradients.value})
    adjoint.push_back(gradient);
  if (shape.hasDecay())
    adjoint.push_back(&gradients.decay);
  if (shape.hasBeta())
    adjoint.push_back(&gradients.beta);
  phases.run(buildRecurrenceGradients, shape.valueTile, adjoint);
  return gradients;
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

static double difference(ArrayRef<double> got, ArrayRef<double> expected) {
  double worst = 0.0, largest = 1e-30;
  for (auto [x, y] : llvm::zip(got, expected)) {
    if (!(std::abs(x - y) <= worst)) // a NaN is a difference
      worst = std::isnan(x - y) ? INFINITY : std::abs(x - y);
    largest = std::max(largest, std::abs(y));
  }
  return worst / largest;
}

double hybrid::tile::test::difference(const HostBuffer &got,
                                      const HostBuffer &expected,
                                      const Call &call) {
  int64_t width = got.elements().size() / got.shape()[0];
  return ::difference(got.elements().take_front(call.tokens() * width),
                      expected.elements().take_front(call.tokens() * width));
}

double hybrid::tile::test::difference(const HostBuffer &got,
                                      const HostBuffer &expected) {
  return ::difference(got.elements(), expected.elements());
}

std::string hybrid::tile::test::print(const Call &call) {
  std::string text;
  llvm::raw_string_ostream os(text);
  const RecurrenceShape &s = call.shape;
  os << (s.isDelta() ? "delta" : "additive") << " decay " << int(s.decay)
     << " heads " << s.heads << "/" << s.kvHeads << " K " << s.keyDim << " V "
     << s.valueDim << " window " << s.window << " stride " << s.stride
     << " lengths";
  for (const Piece &piece : call.pieces)
    os << " " << piece.length;
  return text;
}

//===----------------------------------------------------------------------===//
// Expectations
//===----------------------------------------------------------------------===//

RecurrenceShape hybrid::tile::test::smallShape(RecurrenceUpdate update,
                                               RecurrenceDecay decay) {
  RecurrenceShape shape;
  shape.update = update;
  shape.decay = decay;
  shape.keyDim = 16;
  shape.valueDim = 8;
  shape.scale = 0.25;
  return shape;
}

void hybrid::tile::test::expectOutputs(Call call, double tolerance,
                                       Arithmetic arithmetic,
                                       BuildProgram build) {
  SCOPED_TRACE(print(call));
  HostBuffer finalState = call.state;
  HostBuffer expected =
      define(call, call.shape.hasState ? &finalState : nullptr);
  HostBuffer output = run(build, call, arithmetic);
  EXPECT_LE(difference(output, expected, call), tolerance);
  if (call.shape.hasState)
    EXPECT_LE(difference(call.state, finalState), tolerance);
}

void hybrid::tile::test::expectGradients(const Call &call, double tolerance,
                                         Arithmetic arithmetic,
                                         RunBackward run) {
  SCOPED_TRACE(print(call));
  Gradients expected = defineGradients(call);
  Gradients got = run(call, arithmetic);
  EXPECT_LE(difference(got.query, expected.query, call), tolerance) << "dq";
  EXPECT_LE(difference(got.key, expected.key, call), tolerance) << "dk";
  EXPECT_LE(difference(got.value, expected.value, call), tolerance) << "dv";
  if (call.shape.hasDecay())
    EXPECT_LE(difference(got.decay, expected.decay, call), tolerance)
        << "ddecay";
  if (call.shape.hasBeta())
    EXPECT_LE(difference(got.beta, expected.beta, call), tolerance) << "dbeta";
  if (call.shape.hasState)
    EXPECT_LE(difference(got.initial, expected.initial), tolerance)
        << "dinitial";
}
