//===- RecurrenceDefinition.cpp - the recurrence, token by token ---------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecurrenceHarness.h"
#include <cmath>

using namespace hybrid::tile;
using namespace hybrid::tile::test;

namespace {
using Matrix = std::vector<double>; // [K, V]

/// The recurrence of one head over consecutive rows, with what its adjoint
/// needs.
class Head {
public:
  Head(const Call &call, int64_t head)
      : c(call), h(head), g(head / call.shape.group()) {}

  double alpha(int64_t t, int64_t key) const {
    if (!c.shape.hasDecay())
      return 1.0;
    return std::exp(c.decay(
        {t, h, c.shape.decay == RecurrenceDecay::PerChannel ? key : 0}));
  }

  /// One token; remembers the state before and after the decay, and u.
  void step(int64_t t, Matrix &state) {
    int64_t K = c.shape.keyDim, V = c.shape.valueDim;
    before.push_back(state);
    for (int64_t i = 0; i < K; ++i)
      for (int64_t j = 0; j < V; ++j)
        state[i * V + j] *= alpha(t, i);
    decayed.push_back(state);
    Matrix r(V);
    for (int64_t j = 0; j < V; ++j) {
      r[j] = c.value({t, g, j});
      if (c.shape.isDelta())
        for (int64_t i = 0; i < K; ++i)
          r[j] -= state[i * V + j] * c.key({t, g, i});
    }
    residual.push_back(r);
    double beta = c.shape.hasBeta() ? c.beta({t, h}) : 1.0;
    for (int64_t i = 0; i < K; ++i)
      for (int64_t j = 0; j < V; ++j)
        state[i * V + j] += c.key({t, g, i}) * beta * r[j];
    rows.push_back(t);
  }

  void read(int64_t t, const Matrix &state, HostBuffer &output) const {
    int64_t K = c.shape.keyDim, V = c.shape.valueDim;
    for (int64_t j = 0; j < V; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < K; ++i)
        sum += c.query({t, h, i}) * state[i * V + j];
      output({t, h, j}) = c.shape.scale * sum;
    }
  }

  /// Walks all remembered tokens back; `after` is the last state, dState its
  /// gradient, which becomes that of the first. `reads(t)`: whether t has an
  /// output.
  void back(const Matrix &after, Matrix &dState, Gradients &out,
            const std::function<bool(int64_t)> &reads) const;

private:
  void backStep(size_t n, const Matrix &state, Matrix &dState, Gradients &out,
                bool reads) const;

  const Call &c;
  int64_t h, g;
  std::vector<Matrix> before, decayed, residual;
  std::vector<int64_t> rows;
};
} // namespace

void Head::back(const Matrix &after, Matrix &dState, Gradients &out,
                const std::function<bool(int64_t)> &reads) const {
  const Matrix *state = &after;
  for (size_t n = rows.size(); n-- > 0; state = &before[n])
    backStep(n, *state, dState, out, reads(rows[n]));
}

/// mixers.md 1.8, with w the gradient that reaches the residual.
void Head::backStep(size_t n, const Matrix &state, Matrix &dState,
                    Gradients &out, bool reads) const {
  int64_t K = c.shape.keyDim, V = c.shape.valueDim, t = rows[n];
  bool delta = c.shape.isDelta();
  if (reads)
    for (int64_t i = 0; i < K; ++i)
      for (int64_t j = 0; j < V; ++j) {
        double dO = c.dOutput({t, h, j});
        out.query({t, h, i}) += c.shape.scale * state[i * V + j] * dO;
        dState[i * V + j] += c.shape.scale * c.query({t, h, i}) * dO;
      }
  double beta = c.shape.hasBeta() ? c.beta({t, h}) : 1.0;
  Matrix w(V);
  for (int64_t j = 0; j < V; ++j) {
    double du = 0;
    for (int64_t i = 0; i < K; ++i)
      du += dState[i * V + j] * c.key({t, g, i});
    if (delta)
      out.beta({t, h}) += du * residual[n][j];
    w[j] = beta * du;
    out.value({t, g, j}) += w[j];
  }
  bool perChannel = c.shape.decay == RecurrenceDecay::PerChannel;
  for (int64_t i = 0; i < K; ++i)
    for (int64_t j = 0; j < V; ++j) {
      double &d = dState[i * V + j];
      out.key({t, g, i}) += d * beta * residual[n][j];
      if (delta) {
        out.key({t, g, i}) -= decayed[n][i * V + j] * w[j];
        d -= c.key({t, g, i}) * w[j];
      }
      if (c.shape.hasDecay())
        out.decay({t, h, perChannel ? i : 0}) +=
            alpha(t, i) * d * before[n][i * V + j];
      d *= alpha(t, i);
    }
}

/// Position at which the history of the output at position t starts
/// (mixers.md 2.1).
static int64_t historyStart(const RecurrenceShape &shape, int64_t t) {
  if (!shape.window || t < shape.window)
    return 0;
  return shape.stride * ((t - shape.window) / shape.stride + 1);
}

static Matrix readState(const HostBuffer &buffer, const Call &call,
                        int64_t slot, int64_t head) {
  int64_t K = call.shape.keyDim, V = call.shape.valueDim;
  Matrix state(K * V, 0.0);
  if (call.slots)
    for (int64_t i = 0; i < K; ++i)
      for (int64_t j = 0; j < V; ++j)
        state[i * V + j] = buffer({slot, head, i, j});
  return state;
}

static void writeState(const Matrix &state, HostBuffer &buffer,
                       const Call &call, int64_t slot, int64_t head) {
  int64_t K = call.shape.keyDim, V = call.shape.valueDim;
  for (int64_t i = 0; i < K; ++i)
    for (int64_t j = 0; j < V; ++j)
      buffer({slot, head, i, j}) = state[i * V + j];
}

/// Calls `visit` for every piece and head, and with a window for every output
/// position: rows [from, to) from a zero or the stored state, where output is
/// wanted from row `reads` on.
static void
eachHistory(const Call &call,
            const std::function<void(const Piece &, int64_t head, int64_t from,
                                     int64_t reads, int64_t to)> &visit) {
  for (size_t p = 0; p < call.pieces.size(); ++p) {
    int64_t begin = call.begin(p), length = call.pieces[p].length;
    for (int64_t h = 0; h < call.shape.heads; ++h) {
      if (!call.shape.window) {
        visit(call.pieces[p], h, begin, begin, begin + length);
        continue;
      }
      for (int64_t t = 0; t < length; ++t)
        visit(call.pieces[p], h, begin + historyStart(call.shape, t), begin + t,
              begin + t + 1);
    }
  }
}

HostBuffer hybrid::tile::test::define(const Call &call,
                                      HostBuffer *finalState) {
  HostBuffer output =
      activation(call.tokens(), {call.shape.heads, call.shape.valueDim});
  eachHistory(call, [&](const Piece &piece, int64_t h, int64_t from,
                        int64_t reads, int64_t to) {
    Head head(call, h);
    Matrix state(call.shape.keyDim * call.shape.valueDim, 0.0);
    if (call.shape.hasState && !call.shape.window)
      state = readState(call.state, call, piece.slot, h);
    for (int64_t t = from; t < to; ++t) {
      head.step(t, state);
      if (t >= reads)
        head.read(t, state, output);
    }
    if (finalState)
      writeState(state, *finalState, call, piece.slot, h);
  });
  return output;
}

Gradients hybrid::tile::test::defineGradients(const Call &call) {
  Gradients gradients = noGradients(call, 0.0);
  eachHistory(call, [&](const Piece &piece, int64_t h, int64_t from,
                        int64_t reads, int64_t to) {
    Head head(call, h);
    Matrix state(call.shape.keyDim * call.shape.valueDim, 0.0);
    Matrix dState = state;
    if (call.shape.hasState)
      state = readState(call.state, call, piece.slot, h);
    if (call.shape.hasFinalCotangent)
      dState = readState(call.dFinal, call, piece.slot, h);
    for (int64_t t = from; t < to; ++t)
      head.step(t, state);
    head.back(state, dState, gradients, [&](int64_t t) { return t >= reads; });
    if (call.shape.hasState)
      writeState(dState, gradients.initial, call, piece.slot, h);
  });
  return gradients;
}
