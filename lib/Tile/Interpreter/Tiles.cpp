//===- Tiles.cpp - whole tiles in the tile interpreter -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace hybrid::tile;

/// Elements before, along and after a dim of a row-major tile: element
/// (o, i, n) is at (o * size + i) * inner + n.
struct Lanes {
  Lanes(ArrayRef<int64_t> shape, uint64_t dim) : size(shape[dim]) {
    for (uint64_t d = 0; d < dim; ++d)
      outer *= shape[d];
    for (uint64_t d = dim + 1; d < shape.size(); ++d)
      inner *= shape[d];
  }
  size_t at(int64_t o, int64_t i, int64_t n) const {
    return (o * size + i) * inner + n;
  }
  int64_t outer = 1, size, inner = 1;
};

/// out[m, n] += Σ_k a[m, k] b[k, n], each step through `round`.
template <typename Round>
static void multiply(std::vector<double> &out, const Datum &a, const Datum &b,
                     DotOp op, Round round) {
  int64_t rows = op.getType().getDimSize(0),
          columns = op.getType().getDimSize(1);
  int64_t depth = a.shape[op.getTransposeA() ? 0 : 1];
  bool transposeA = op.getTransposeA(), transposeB = op.getTransposeB();
  const double *left = a.tile->data(), *right = b.tile->data();
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t k = 0; k < depth; ++k) {
      double x = left[transposeA ? k * rows + m : m * depth + k];
      for (int64_t n = 0; n < columns; ++n) {
        double y = right[transposeB ? n * depth + k : k * columns + n];
        double &sum = out[m * columns + n];
        sum = round(sum + x * y);
      }
    }
}

void Machine::dot(DotOp op) {
  Datum a = get(op.getA()), b = get(op.getB()), acc = get(op.getAcc());
  RankedTensorType type = op.getType();
  std::vector<double> out(acc.tile->begin(), acc.tile->end());
  // A float product is exact in double, so one rounding gives the fused result.
  if (isF32() && type.getElementType().isF32())
    multiply(out, a, b, op, [](double x) { return static_cast<float>(x); });
  else
    multiply(out, a, b, op, [](double x) { return x; });
  set(op, {type.getShape(), std::move(out)});
}

void Machine::reduce(ReduceOp op) {
  Datum in = get(op.getInput());
  RankedTensorType type = op.getType();
  Lanes lanes(in.shape, op.getDim());
  bool isMax = op.getKind() == ReduceKind::max;
  std::vector<double> out;
  for (int64_t o = 0; o < lanes.outer; ++o)
    for (int64_t n = 0; n < lanes.inner; ++n) {
      double value = isMax ? -std::numeric_limits<double>::infinity() : 0.0;
      for (int64_t i = 0; i < lanes.size; ++i) {
        double x = in[lanes.at(o, i, n)];
        if (isMax)
          value = std::isnan(x) || std::isnan(value) ? std::nan("")
                                                     : std::fmax(value, x);
        else
          value = round(type.getElementType(), value + x);
      }
      out.push_back(value);
    }
  set(op, {type.getShape(), std::move(out)});
}

void Machine::prefixSum(PrefixSumOp op) {
  Datum in = get(op.getInput());
  RankedTensorType type = op.getType();
  Lanes lanes(in.shape, op.getDim());
  std::vector<double> out(in.size());
  for (int64_t o = 0; o < lanes.outer; ++o)
    for (int64_t n = 0; n < lanes.inner; ++n) {
      double sum = 0.0;
      for (int64_t step = 0; step < lanes.size; ++step) {
        size_t at =
            lanes.at(o, op.getReverse() ? lanes.size - 1 - step : step, n);
        sum = round(type.getElementType(), sum + in[at]);
        out[at] = sum;
      }
    }
  set(op, {type.getShape(), std::move(out)});
}

void Machine::unitLowerInverse(UnitLowerInverseOp op) {
  Datum a = get(op.getInput());
  RankedTensorType type = op.getType();
  int64_t size = type.getDimSize(0);
  std::vector<double> x(size * size, 0.0);
  for (int64_t i = 0; i < size; ++i) {
    x[i * size + i] = 1.0;
    for (int64_t j = 0; j < i; ++j)
      for (int64_t c = 0; c <= j; ++c)
        x[i * size + c] =
            round(type.getElementType(),
                  std::fma(-a[i * size + j], x[j * size + c], x[i * size + c]));
  }
  set(op, {type.getShape(), std::move(x)});
}

void Machine::iota(IotaOp op) {
  RankedTensorType type = op.getType();
  Lanes lanes(type.getShape(), op.getDim());
  std::vector<double> out(type.getNumElements());
  for (int64_t o = 0; o < lanes.outer; ++o)
    for (int64_t i = 0; i < lanes.size; ++i)
      for (int64_t n = 0; n < lanes.inner; ++n)
        out[lanes.at(o, i, n)] = static_cast<double>(i);
  set(op, {type.getShape(), std::move(out)});
}

/// Fills a tile of `shape`, element by element, from element `from(index)` of
/// `in`.
template <typename From>
static Datum gather(const Datum &in, ArrayRef<int64_t> shape, From from) {
  std::vector<double> out;
  SmallVector<int64_t, 4> at(shape.size(), 0);
  do {
    size_t offset = 0;
    SmallVector<int64_t, 4> index = from(at);
    for (auto [i, size] : llvm::zip_equal(index, in.shape))
      offset = offset * size + i;
    out.push_back(in[offset]);
  } while (nextIndex(at, shape));
  return {shape, std::move(out)};
}

void Machine::broadcast(BroadcastOp op) {
  Datum in = get(op.getInput());
  set(op, gather(in, op.getType().getShape(), [&](ArrayRef<int64_t> at) {
        SmallVector<int64_t, 4> index(at);
        for (size_t d = 0; d < index.size(); ++d)
          if (in.shape[d] == 1)
            index[d] = 0;
        return index;
      }));
}

void Machine::transpose(TransposeOp op) {
  ArrayRef<int64_t> permutation = op.getPermutation();
  set(op, gather(get(op.getInput()), op.getType().getShape(),
                 [&](ArrayRef<int64_t> at) {
                   SmallVector<int64_t, 4> index(at.size());
                   for (size_t d = 0; d < at.size(); ++d)
                     index[permutation[d]] = at[d];
                   return index;
                 }));
}

void Machine::slice(SliceOp op) {
  set(op, gather(get(op.getInput()), op.getType().getShape(),
                 [&](ArrayRef<int64_t> at) {
                   SmallVector<int64_t, 4> index(at);
                   index[op.getDim()] += op.getOffset();
                   return index;
                 }));
}

void Machine::concat(ConcatOp op) {
  RankedTensorType type = op.getType();
  Lanes out(type.getShape(), op.getDim());
  std::vector<double> elements(type.getNumElements());
  int64_t offset = 0;
  for (Value input : op.getInputs()) {
    const Datum &in = get(input);
    Lanes lanes(in.shape, op.getDim());
    for (int64_t o = 0; o < lanes.outer; ++o)
      for (int64_t i = 0; i < lanes.size; ++i)
        for (int64_t n = 0; n < lanes.inner; ++n)
          elements[out.at(o, offset + i, n)] = in[lanes.at(o, i, n)];
    offset += lanes.size;
  }
  set(op, {type.getShape(), std::move(elements)});
}
