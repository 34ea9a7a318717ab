//===- HeadDefinitions.cpp - embedding, products, loss, plainly -----------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Definitions.h"

#include <cmath>

using namespace mlir;
using namespace hybrid;
using namespace hybrid::oracle;

/// Labels with this value do not count.
static constexpr int64_t ignoredLabel = -100;

static LogicalResult verifyIds(Operation *op, const Tensor &ids,
                               int64_t vocabulary) {
  for (int64_t t = 0; t < ids.size(); ++t)
    if (ids(t) < 0 || ids(t) >= vocabulary)
      return op->emitOpError()
             << "id " << static_cast<int64_t>(ids(t)) << " at token " << t
             << " is outside the table of " << vocabulary << " rows";
  return success();
}

LogicalResult oracle::define(EmbedOp op, Operands operands, Results &results,
                             const Call &) {
  const Tensor &ids = *operands[0], &table = *operands[1];
  if (failed(verifyIds(op, ids, table.dim(0))))
    return failure();
  Tensor result({ids.dim(0), table.dim(1)});
  for (int64_t t = 0; t < ids.dim(0); ++t)
    for (int64_t c = 0; c < table.dim(1); ++c)
      result(t, c) = table(static_cast<int64_t>(ids(t)), c);
  results.push_back(std::move(result));
  return success();
}

LogicalResult oracle::define(EmbedGradOp op, Operands operands,
                             Results &results, const Call &) {
  const Tensor &ids = *operands[0], &dy = *operands[1];
  Tensor dtable(op.getDtable().getType().getShape());
  if (failed(verifyIds(op, ids, dtable.dim(0))))
    return failure();
  for (int64_t t = 0; t < ids.dim(0); ++t)
    for (int64_t c = 0; c < dy.dim(1); ++c)
      dtable(static_cast<int64_t>(ids(t)), c) += dy(t, c);
  results.push_back(std::move(dtable));
  return success();
}

LogicalResult oracle::define(ProductOp op, Operands operands, Results &results,
                             const Call &) {
  const Tensor &a = *operands[0], &b = *operands[1];
  bool transposeA = op.getTransposeA(), transposeB = op.getTransposeB();
  int64_t rows = a.dim(transposeA ? 1 : 0), inner = a.dim(transposeA ? 0 : 1);
  int64_t columns = b.dim(transposeB ? 0 : 1),
          innerB = b.dim(transposeB ? 1 : 0);
  if (inner != innerB)
    return op.emitOpError() << "sums over " << inner << " columns of a but "
                            << innerB << " rows of b";
  Tensor result({rows, columns});
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t n = 0; n < columns; ++n)
      for (int64_t k = 0; k < inner; ++k)
        result(m, n) +=
            (transposeA ? a(k, m) : a(m, k)) * (transposeB ? b(n, k) : b(k, n));
  results.push_back(std::move(result));
  return success();
}

/// ln Σ exp of a row; -inf for a row of -inf.
static double logSumExp(ArrayRef<double> row) {
  double largest = *std::max_element(row.begin(), row.end());
  if (std::isinf(largest))
    return largest;
  double sum = 0;
  for (double x : row)
    sum += std::exp(x - largest);
  return largest + std::log(sum);
}

static LogicalResult verifyLabels(Operation *op, const Tensor &labels,
                                  int64_t vocabulary) {
  for (int64_t t = 0; t < labels.size(); ++t)
    if (labels(t) != ignoredLabel && (labels(t) < 0 || labels(t) >= vocabulary))
      return op->emitOpError()
             << "label " << static_cast<int64_t>(labels(t)) << " at token " << t
             << " is neither below " << vocabulary << " nor " << ignoredLabel
             << " for none";
  return success();
}

LogicalResult oracle::define(CrossEntropyOp op, Operands operands,
                             Results &results, const Call &) {
  const Tensor &logits = *operands[0], &labels = *operands[1],
               &weights = *operands[2];
  size_t vocabulary = logits.dim(1);
  if (failed(verifyLabels(op, labels, vocabulary)))
    return failure();
  Tensor loss(labels.shape);
  for (int64_t t = 0; t < labels.dim(0); ++t)
    if (labels(t) != ignoredLabel)
      loss(t) =
          weights(t) * (logSumExp({&logits.data[t * vocabulary], vocabulary}) -
                        logits(t, static_cast<int64_t>(labels(t))));
  results.push_back(std::move(loss));
  return success();
}

LogicalResult oracle::define(CrossEntropyGradOp op, Operands operands,
                             Results &results, const Call &) {
  const Tensor &logits = *operands[0], &labels = *operands[1],
               &weights = *operands[2];
  const Tensor *dloss = op.getDloss() ? operands[3] : nullptr;
  size_t vocabulary = logits.dim(1);
  if (failed(verifyLabels(op, labels, vocabulary)))
    return failure();
  Tensor dlogits(logits.shape);
  for (int64_t t = 0; t < labels.dim(0); ++t) {
    if (labels(t) == ignoredLabel)
      continue;
    double lse = logSumExp({&logits.data[t * vocabulary], vocabulary});
    double factor = weights(t) * (dloss ? (*dloss)(t) : 1);
    for (int64_t n = 0; n < logits.dim(1); ++n)
      dlogits(t, n) =
          factor * (std::exp(logits(t, n) - lse) - (n == labels(t) ? 1 : 0));
  }
  results.push_back(std::move(dlogits));
  return success();
}

LogicalResult oracle::define(LastRowsOp op, Operands operands, Results &results,
                             const Call &call) {
  const Tensor &x = *operands[0];
  Tensor result({static_cast<int64_t>(call.segments.size()), x.dim(1)});
  for (auto [s, segment] : llvm::enumerate(call.segments))
    for (int64_t c = 0; c < x.dim(1) && segment.length() > 0; ++c)
      result(s, c) = x(segment.end - 1, c);
  results.push_back(std::move(result));
  return success();
}
