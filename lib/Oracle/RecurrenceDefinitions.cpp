//===- RecurrenceDefinitions.cpp - recurrences token by token -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A recurrence is a set of runs: token ranges that are walked from a zero state
// or from a state of the slot. Without a window a segment is one run. With one
// (SWLA) there is a run for every window, independent of the others, of which
// the outputs it is responsible for are kept.
//
//===----------------------------------------------------------------------===//

#include "Definitions.h"

#include <cmath>

using namespace mlir;
using namespace hybrid;
using namespace hybrid::oracle;

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

namespace {
struct Run {
  /// Tokens walked, as rows of the stream, and those whose output is kept.
  int64_t begin, end;
  int64_t keptBegin, keptEnd;
  /// Entry of the slot's ring that the run ends in (0 without a window), and
  /// whether it starts there too rather than from zero.
  int64_t ring;
  bool continues;
};
} // namespace

/// The windows [c·S, c·S + W) of positions that touch the segment, in order.
/// Window 0 keeps all its outputs, the others the last S.
static std::vector<Run> windowRuns(const Segment &segment, int64_t window,
                                   int64_t stride) {
  std::vector<Run> runs;
  int64_t first = segment.position, last = segment.position + segment.length();
  auto row = [&](int64_t position) {
    return segment.begin + std::clamp(position, first, last) - first;
  };
  for (int64_t c = 0; c * stride < last; ++c) {
    int64_t start = c * stride, end = start + window;
    if (end <= first)
      continue;
    int64_t kept = c == 0 ? 0 : end - stride;
    runs.push_back({row(start), row(end), row(kept), row(end),
                    c % (window / stride),
                    /*continues=*/start < first});
  }
  return runs;
}

template <typename Op>
static std::vector<Run> runsOf(Op op, const Segment &segment) {
  if (op.getWindow())
    return windowRuns(segment, *op.getWindow(), *op.getStride());
  return {{segment.begin, segment.end, segment.begin, segment.end, 0,
           /*continues=*/true}};
}

//===----------------------------------------------------------------------===//
// One head
//===----------------------------------------------------------------------===//

namespace {
/// A state `[K, V]`.
struct Matrix {
  int64_t columns;
  std::vector<double> data;

  Matrix(int64_t rows, int64_t columns)
      : columns(columns), data(rows * columns) {}
  double &operator()(int64_t i, int64_t j) { return data[i * columns + j]; }
  double operator()(int64_t i, int64_t j) const {
    return data[i * columns + j];
  }
};

/// The operands of a recurrence seen from one head.
struct Head {
  const Tensor &q, &k, &v;
  const Tensor *decay, *beta;
  bool delta;
  double scale;
  int64_t head, kvHead;

  int64_t keyDim() const { return q.dim(2); }
  int64_t valueDim() const { return v.dim(2); }

  double key(int64_t t, int64_t i) const { return k(t, kvHead, i); }
  double value(int64_t t, int64_t j) const { return v(t, kvHead, j); }
  double query(int64_t t, int64_t i) const { return q(t, head, i); }
  double writeStrength(int64_t t) const { return beta ? (*beta)(t, head) : 1; }
  double alpha(int64_t t, int64_t i) const {
    return decay ? std::exp((*decay)(t, head, decay->dim(2) == 1 ? 0 : i)) : 1;
  }

  /// diag(α_t) S.
  Matrix decayed(const Matrix &state, int64_t t) const {
    Matrix result = state;
    for (int64_t i = 0; i < keyDim(); ++i)
      for (int64_t j = 0; j < valueDim(); ++j)
        result(i, j) *= alpha(t, i);
    return result;
  }

  /// v_t - S̃ᵀ k_t, what the delta rule finds missing.
  std::vector<double> residual(const Matrix &decayedState, int64_t t) const {
    std::vector<double> r(valueDim());
    for (int64_t j = 0; j < valueDim(); ++j) {
      r[j] = value(t, j);
      for (int64_t i = 0; i < keyDim(); ++i)
        r[j] -= decayedState(i, j) * key(t, i);
    }
    return r;
  }

  /// S_t from S_{t-1}.
  Matrix step(const Matrix &state, int64_t t) const {
    Matrix next = decayed(state, t);
    std::vector<double> written(valueDim());
    if (delta)
      written = residual(next, t);
    for (int64_t j = 0; j < valueDim(); ++j)
      written[j] = delta ? writeStrength(t) * written[j] : value(t, j);
    for (int64_t i = 0; i < keyDim(); ++i)
      for (int64_t j = 0; j < valueDim(); ++j)
        next(i, j) += key(t, i) * written[j];
    return next;
  }
};

/// The state of one head in a per-slot tensor `[slots, (ring,) heads, K, V]`.
class StateView {
public:
  StateView(Tensor &states, int64_t slot, int64_t ring, int64_t head)
      : states(states) {
    int64_t rings = states.rank() == 5 ? states.dim(1) : 1;
    int64_t heads = states.dim(states.rank() - 3);
    size = states.dim(states.rank() - 2) * states.dim(states.rank() - 1);
    start = ((slot * rings + ring) * heads + head) * size;
  }

  void load(Matrix &matrix) const {
    std::copy_n(states.data.begin() + start, size, matrix.data.begin());
  }
  void store(const Matrix &matrix) {
    std::copy(matrix.data.begin(), matrix.data.end(),
              states.data.begin() + start);
  }
  void clear() { std::fill_n(states.data.begin() + start, size, 0.0); }

private:
  Tensor &states;
  int64_t start, size;
};
} // namespace

template <typename Op>
static Head headOf(Op op, Operands operands, int64_t head) {
  auto optional = [&](Value operand) -> const Tensor * {
    if (!operand)
      return nullptr;
    for (auto [value, tensor] : llvm::zip(op->getOperands(), operands))
      if (value == operand)
        return tensor;
    llvm_unreachable("an operand of the operation");
  };
  return Head{*operands[0],
              *operands[1],
              *operands[2],
              optional(op.getDecay()),
              optional(op.getBeta()),
              op.getUpdate() == UpdateRule::delta,
              op.getScale().convertToDouble(),
              head,
              head / op.getKvGroup()};
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

/// Walks a run; writes the outputs it keeps and leaves the last state in
/// `state`.
static void walk(const Head &head, const Run &run, Matrix &state, Tensor &o) {
  for (int64_t t = run.begin; t < run.end; ++t) {
    state = head.step(state, t);
    if (t < run.keptBegin || t >= run.keptEnd)
      continue;
    for (int64_t j = 0; j < head.valueDim(); ++j) {
      double sum = 0;
      for (int64_t i = 0; i < head.keyDim(); ++i)
        sum += state(i, j) * head.query(t, i);
      o(t, head.head, j) = head.scale * sum;
    }
  }
}

LogicalResult oracle::define(RecurrenceOp op, Operands operands,
                             Results &results, const Call &call) {
  const Tensor &q = *operands[0], &v = *operands[2];
  Tensor o({q.dim(0), q.dim(1), v.dim(2)});
  Tensor states = op.getInitial() ? *operands.back() : Tensor();
  for (const Segment &segment : call.segments)
    for (int64_t h = 0; h < q.dim(1); ++h) {
      Head head = headOf(op, operands, h);
      // Ascending runs: a window that opens later takes over the ring entry.
      for (const Run &run : runsOf(op, segment)) {
        Matrix state(head.keyDim(), head.valueDim());
        if (op.getInitial() && run.continues)
          StateView(states, segment.slot, run.ring, h).load(state);
        walk(head, run, state, o);
        if (op.getInitial())
          StateView(states, segment.slot, run.ring, h).store(state);
      }
    }
  results.push_back(std::move(o));
  if (op.getInitial())
    results.push_back(std::move(states));
  return success();
}

/// Whether the last window of the ring entry that was opened before position
/// `last` has ended by then.
static bool hasEnded(int64_t ring, int64_t last, int64_t window,
                     int64_t stride) {
  int64_t rings = window / stride;
  int64_t opened = (last + stride - 1) / stride;
  if (opened <= ring)
    return false;
  int64_t latest = ring + (opened - 1 - ring) / rings * rings;
  return latest * stride + window <= last;
}

void oracle::clearUnspecified(Operation *op, MutableArrayRef<Tensor> results,
                              const Call &call) {
  auto recurrence = dyn_cast<RecurrenceOp>(op);
  if (!recurrence || !recurrence.getWindow() || !recurrence.getInitial())
    return;
  int64_t window = *recurrence.getWindow(), stride = *recurrence.getStride();
  Tensor &states = results.back();
  for (const Segment &segment : call.segments)
    for (int64_t ring = 0; ring < window / stride; ++ring)
      if (hasEnded(ring, segment.position + segment.length(), window, stride))
        for (int64_t head = 0; head < states.dim(2); ++head)
          StateView(states, segment.slot, ring, head).clear();
}

//===----------------------------------------------------------------------===//
// Adjoint
//===----------------------------------------------------------------------===//

namespace {
struct RecurrenceGradients {
  Tensor dq, dk, dv, ddecay, dbeta;
};
} // namespace

/// One step backwards. `dstate` is the gradient of S_t on entry (what comes
/// from later tokens) and of S_{t-1} on exit. The equations are those of the
/// operation's description.
static void stepBack(const Head &head, const Tensor *dout, int64_t t,
                     const Matrix &before, const Matrix &after, Matrix &dstate,
                     RecurrenceGradients &gradients) {
  int64_t keyDim = head.keyDim(), valueDim = head.valueDim(), h = head.head,
          kv = head.kvHead;
  if (dout)
    for (int64_t i = 0; i < keyDim; ++i)
      for (int64_t j = 0; j < valueDim; ++j) {
        dstate(i, j) += head.scale * head.query(t, i) * (*dout)(t, h, j);
        gradients.dq(t, h, i) += head.scale * after(i, j) * (*dout)(t, h, j);
      }

  Matrix decayedState = head.decayed(before, t);
  std::vector<double> written(valueDim), dwritten(valueDim);
  for (int64_t j = 0; j < valueDim; ++j)
    for (int64_t i = 0; i < keyDim; ++i)
      dwritten[j] += dstate(i, j) * head.key(t, i);

  if (head.delta) {
    std::vector<double> r = head.residual(decayedState, t);
    double beta = head.writeStrength(t);
    for (int64_t j = 0; j < valueDim; ++j) {
      if (head.beta)
        gradients.dbeta(t, h) += dwritten[j] * r[j];
      written[j] = beta * r[j];
      dwritten[j] *= beta; // w, the gradient that reaches the residual
      gradients.dv(t, kv, j) += dwritten[j];
    }
    for (int64_t i = 0; i < keyDim; ++i)
      for (int64_t j = 0; j < valueDim; ++j) {
        gradients.dk(t, kv, i) +=
            dstate(i, j) * written[j] - decayedState(i, j) * dwritten[j];
        dstate(i, j) -= head.key(t, i) * dwritten[j];
      }
  } else {
    for (int64_t j = 0; j < valueDim; ++j)
      gradients.dv(t, kv, j) += dwritten[j];
    for (int64_t i = 0; i < keyDim; ++i)
      for (int64_t j = 0; j < valueDim; ++j)
        gradients.dk(t, kv, i) += dstate(i, j) * head.value(t, j);
  }

  for (int64_t i = 0; i < keyDim; ++i)
    for (int64_t j = 0; j < valueDim; ++j) {
      if (head.decay)
        gradients.ddecay(t, h, head.decay->dim(2) == 1 ? 0 : i) +=
            dstate(i, j) * decayedState(i, j);
      dstate(i, j) *= head.alpha(t, i);
    }
}

/// Walks a run there and back.
static void walkBack(const Head &head, const Run &run, const Matrix &initial,
                     const Tensor &dout, Matrix &dstate,
                     RecurrenceGradients &gradients) {
  std::vector<Matrix> states = {initial};
  for (int64_t t = run.begin; t < run.end; ++t)
    states.push_back(head.step(states.back(), t));
  for (int64_t t = run.end - 1; t >= run.begin; --t) {
    bool kept = t >= run.keptBegin && t < run.keptEnd;
    stepBack(head, kept ? &dout : nullptr, t, states[t - run.begin],
             states[t - run.begin + 1], dstate, gradients);
  }
}

/// All runs of one head in one segment. `dstates` holds the gradients of the
/// states after the call and is left with those of the states before it.
static void segmentBack(RecurrenceGradOp op, const Head &head,
                        const Segment &segment, const Tensor &dout,
                        Tensor *initial, Tensor *dstates,
                        RecurrenceGradients &gradients) {
  // Descending: the run that wrote a ring entry last takes the gradient of its
  // final state, the ones it took over from get none.
  std::vector<Run> runs = runsOf(op, segment);
  for (const Run &run : llvm::reverse(runs)) {
    Matrix state(head.keyDim(), head.valueDim()), dstate = state;
    if (initial && run.continues)
      StateView(*initial, segment.slot, run.ring, head.head).load(state);
    if (dstates) {
      StateView view(*dstates, segment.slot, run.ring, head.head);
      view.load(dstate);
      view.clear();
    }
    walkBack(head, run, state, dout, dstate, gradients);
    if (dstates && run.continues)
      StateView(*dstates, segment.slot, run.ring, head.head).store(dstate);
  }
}

LogicalResult oracle::define(RecurrenceGradOp op, Operands operands,
                             Results &results, const Call &call) {
  const Tensor &q = *operands[0], &dout = *operands[4];
  RecurrenceGradients gradients;
  gradients.dq = Tensor(q.shape);
  gradients.dk = Tensor(operands[1]->shape);
  gradients.dv = Tensor(operands[2]->shape);
  Tensor initial, dstates;
  size_t next = 5;
  if (op.getDecay())
    gradients.ddecay = Tensor(operands[next++]->shape);
  if (op.getBeta())
    gradients.dbeta = Tensor(operands[next++]->shape);
  if (op.getInitial()) {
    initial = *operands[next++];
    dstates = op.getDfinal() ? *operands[next++] : Tensor(initial.shape);
  }

  for (const Segment &segment : call.segments)
    for (int64_t h = 0; h < q.dim(1); ++h)
      segmentBack(op, headOf(op, operands, h), segment, dout,
                  op.getInitial() ? &initial : nullptr,
                  op.getInitial() ? &dstates : nullptr, gradients);

  results = {std::move(gradients.dq), std::move(gradients.dk),
             std::move(gradients.dv)};
  if (op.getDecay())
    results.push_back(std::move(gradients.ddecay));
  if (op.getBeta())
    results.push_back(std::move(gradients.dbeta));
  if (op.getInitial())
    results.push_back(std::move(dstates));
  return success();
}
