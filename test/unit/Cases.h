//===- Cases.h - graph functions with known answers -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Published values and faults of the field as small graph functions. The oracle
// and compiled code are tested on the same cases.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TEST_UNIT_CASES_H
#define HYBRID_TEST_UNIT_CASES_H

#include "hybrid/Oracle/Oracle.h"

#include <ostream>
#include <string>
#include <vector>

namespace hybrid::cases {

using oracle::Call;
using oracle::Tensor;

/// What some consecutive elements of a result are.
struct Expected {
  unsigned result;
  int64_t first;
  std::vector<double> values;
  double tolerance = 1e-6;
  /// `values` is one number, the sum of all elements from `first` on.
  bool isSum = false;

  /// Of the elements of a result, those that `values` are about.
  std::vector<double> of(llvm::ArrayRef<double> data) const;
};

struct Case {
  /// Of the fault ("LIN_09"), or of the row of published values.
  std::string name;
  /// A function @main with one argument per tensor.
  std::string text;
  Call call;
  std::vector<Tensor> arguments;
  std::vector<Expected> expected;
  /// For a call of one segment: other ways to cut its tokens into calls.
  std::vector<std::vector<int64_t>> splits = {};
};

/// What a failing parameterised test prints.
inline void PrintTo(const Case &known, std::ostream *os) { *os << known.name; }

/// Evaluates a function on arguments.
using Evaluate = llvm::function_ref<std::vector<Tensor>(llvm::ArrayRef<Tensor>,
                                                        const Call &)>;

/// The results of `known` when its tokens come in calls of `lengths`: streams
/// are cut and put together, states handed on. `main` is its parsed function.
std::vector<Tensor> evaluateInPieces(const Case &known, mlir::func::FuncOp main,
                                     llvm::ArrayRef<int64_t> lengths,
                                     Evaluate evaluate);

/// Published outputs of the mixers (attention and recurrence, one head).
std::vector<Case> goldenCases();
/// Faults of recurrences, convolutions and their states.
std::vector<Case> recurrenceFaults();
/// Faults of softmax attention, its cache, and softmax itself.
std::vector<Case> attentionFaults();
/// Faults of losses.
std::vector<Case> lossFaults();
/// Faults of adjoints.
std::vector<Case> gradientFaults();
/// Faults of rotary positions.
std::vector<Case> positionFaults();
/// Faults of states, each to be run in several calls.
std::vector<Case> stateFaults();

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

/// Element n is sin(0.7 n + c): the inputs of the published faults.
Tensor gen(double c, llvm::ArrayRef<int64_t> shape);
/// Element (t, i) is sin(a + 1.3 t + 0.7 i): the inputs of the published
/// values. The shape is [tokens, 1, width].
Tensor wave(double a, int64_t tokens, int64_t width);
Tensor filled(llvm::ArrayRef<int64_t> shape, double value);
Tensor map(Tensor tensor, double (*function)(double));
Tensor reshaped(Tensor tensor, llvm::ArrayRef<int64_t> shape);
/// Rows over the last dimension divided by sqrt(Σ x² + 1e-6).
Tensor l2norm(Tensor tensor);
/// Rows [begin, end) of the leading dimension.
Tensor rows(const Tensor &tensor, int64_t begin, int64_t end);
/// Zeros behind the elements of each dimension, to a larger shape: kernels want
/// widths that are a multiple of 8, published fixtures are narrower.
Tensor widened(const Tensor &tensor, llvm::ArrayRef<int64_t> shape);
/// Tensors one after another along the leading dimension.
Tensor stacked(llvm::ArrayRef<Tensor> parts);
double sigmoid(double x);
double softplus(double x);

/// The published gated delta rule fixture: 5 tokens, one head, K = 3, V = 2.
struct GdnFixture {
  Tensor q, k, v, decay, beta;
  GdnFixture();
  /// Rows [begin, end) of all of them.
  GdnFixture slice(int64_t begin, int64_t end) const;
};
/// What pad tokens behind the fixture hold.
GdnFixture gdnPads();

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// A recurrence on arguments q, k, v, (decay), (beta), segments, (initial) with
/// results o, (final).
struct RecurrenceShape {
  const char *update = "additive";
  int64_t heads = 1, kvHeads = 1, keyDim = 2, valueDim = 2;
  /// 0: none, 1: per head, keyDim: per channel.
  int64_t decayDim = 0;
  bool beta = false, state = false;
  double scale = 1;
  int64_t window = 0, stride = 0;

  std::string text() const;
  /// The adjoint: arguments end with d o, (d final), results are dq, dk, dv,
  /// (d decay), (d beta), (d initial).
  std::string gradientText(bool finalCotangent = false) const;
  llvm::SmallVector<int64_t> stateShape(int64_t slots) const;

private:
  struct Pieces;
  Pieces pieces() const;
};

/// Attention on arguments q, k, v, segments with results o, log_sum_exp, or
/// over a cache with arguments q, k, v, k_cache, v_cache, segments and results
/// o, k_cache, v_cache. The cache has `context` rows.
struct AttentionShape {
  int64_t heads = 1, kvHeads = 1, dim = 2, valueDim = 2;
  std::vector<int64_t> windows = {0}, sinks = {0};
  double scale = 1;
  bool cached = false;

  std::string text() const;
  /// Forward and adjoint without a cache: the last argument is d o, results are
  /// o, dq, dk, dv.
  std::string gradientText() const;
};

/// A short convolution on arguments x, weight, segments, (state).
std::string shortConvText(int64_t channels, int64_t kernel, bool state);

} // namespace hybrid::cases

#endif // HYBRID_TEST_UNIT_CASES_H
