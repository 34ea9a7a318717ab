//===- RowDefinitions.cpp - plain definitions of operations on rows ------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Definitions.h"

#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace hybrid;
using namespace hybrid::oracle;

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// ln(1 + exp(x)) without the overflow of exp.
static double softplus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

static double (*unaryFunction(Operation *op))(double) {
  return llvm::TypeSwitch<Operation *, double (*)(double)>(op)
      .Case([](SiluOp) { return +[](double x) { return x * sigmoid(x); }; })
      .Case([](SigmoidOp) { return +[](double x) { return sigmoid(x); }; })
      .Case(
          [](LogSigmoidOp) { return +[](double x) { return -softplus(-x); }; })
      .Case([](SoftplusOp) { return +[](double x) { return softplus(x); }; })
      .Case([](ExpOp) { return +[](double x) { return std::exp(x); }; })
      .Case([](NegOp) { return +[](double x) { return -x; }; });
}

LogicalResult oracle::defineUnary(Operation *op, Operands operands,
                                  Results &results) {
  Tensor result(*operands[0]);
  llvm::transform(result.data, result.data.begin(), unaryFunction(op));
  results.push_back(std::move(result));
  return success();
}

static double (*binaryFunction(Operation *op))(double, double) {
  return llvm::TypeSwitch<Operation *, double (*)(double, double)>(op)
      .Case([](AddOp) { return +[](double a, double b) { return a + b; }; })
      .Case([](SubOp) { return +[](double a, double b) { return a - b; }; })
      .Case([](MulOp) { return +[](double a, double b) { return a * b; }; })
      .Case([](SiluGradOp) {
        return +[](double x, double dy) {
          return dy * sigmoid(x) * (1 + x * (1 - sigmoid(x)));
        };
      })
      .Case([](SigmoidGradOp) {
        return +[](double y, double dy) { return dy * y * (1 - y); };
      })
      .Case([](LogSigmoidGradOp) {
        return +[](double x, double dy) { return dy * sigmoid(-x); };
      })
      .Case([](SoftplusGradOp) {
        return +[](double x, double dy) { return dy * sigmoid(x); };
      });
}

/// Where the element of a stretched operand stands that goes with element
/// `flat` of a tensor of shape `shape`.
static int64_t stretchedIndex(int64_t flat, ArrayRef<int64_t> shape,
                              const Tensor &stretched) {
  int64_t skipped = shape.size() - stretched.rank(), index = 0, stride = 1;
  for (int64_t dim = stretched.rank() - 1; dim >= 0; --dim) {
    int64_t size = shape[skipped + dim];
    if (stretched.dim(dim) != 1)
      index += flat % size * stride;
    flat /= size;
    stride *= stretched.dim(dim);
  }
  return index;
}

LogicalResult oracle::defineBinary(Operation *op, Operands operands,
                                   Results &results) {
  const Tensor &a = *operands[0], &b = *operands[1];
  auto function = binaryFunction(op);
  Tensor result(a.shape);
  for (int64_t i = 0; i < a.size(); ++i)
    result.data[i] = function(a.data[i], b.data[stretchedIndex(i, a.shape, b)]);
  results.push_back(std::move(result));
  return success();
}

LogicalResult oracle::define(ScaleOp op, Operands operands, Results &results,
                             const Call &) {
  Tensor result(*operands[0]);
  for (double &value : result.data)
    value *= op.getFactor().convertToDouble();
  results.push_back(std::move(result));
  return success();
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

/// One over the size of a row: (mean or sum of squares, plus epsilon)^(-1/2).
static double inverseSize(NormKind kind, ArrayRef<double> row, double epsilon) {
  double sum = 0;
  for (double x : row)
    sum += x * x;
  return 1 /
         std::sqrt((kind == NormKind::rms ? sum / row.size() : sum) + epsilon);
}

LogicalResult oracle::define(NormalizeOp op, Operands operands,
                             Results &results, const Call &) {
  Tensor result(*operands[0]);
  int64_t width = result.shape.back();
  for (int64_t start = 0; start < result.size(); start += width) {
    MutableArrayRef<double> row(&result.data[start], width);
    double r =
        inverseSize(op.getKind(), row, op.getEpsilon().convertToDouble());
    for (double &x : row)
      x *= r;
  }
  results.push_back(std::move(result));
  return success();
}

LogicalResult oracle::define(NormalizeGradOp op, Operands operands,
                             Results &results, const Call &) {
  const Tensor &x = *operands[0], &dy = *operands[1];
  Tensor dx(x.shape);
  int64_t width = x.shape.back();
  for (int64_t start = 0; start < x.size(); start += width) {
    double r =
        inverseSize(op.getKind(), {&x.data[start], static_cast<size_t>(width)},
                    op.getEpsilon().convertToDouble());
    double along = 0; // y·dy, its mean for rms
    for (int64_t c = start; c < start + width; ++c)
      along += x.data[c] * r * dy.data[c];
    if (op.getKind() == NormKind::rms)
      along /= width;
    for (int64_t c = start; c < start + width; ++c)
      dx.data[c] = r * (dy.data[c] - x.data[c] * r * along);
  }
  results.push_back(std::move(dx));
  return success();
}

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

/// The base of a segment's angles; dynamic NTK grows it with the length.
static double rotaryBase(RotaryOp op, const Segment &segment) {
  double base = op.getBase().convertToDouble();
  if (!op.getNtkFactor())
    return base;
  double original = *op.getOriginalLength(),
         factor = op.getNtkFactor()->convertToDouble();
  double length =
      std::max<double>(original, segment.position + segment.length());
  double d = op.getRotaryDim();
  return base *
         std::pow(factor * length / original - (factor - 1), d / (d - 2));
}

LogicalResult oracle::define(RotaryOp op, Operands operands, Results &results,
                             const Call &call) {
  Tensor result(*operands[0]);
  int64_t half = op.getRotaryDim() / 2;
  for (const Segment &segment : call.segments) {
    double base = rotaryBase(op, segment);
    for (int64_t t = segment.begin; t < segment.end; ++t) {
      double position = segment.position + (t - segment.begin);
      for (int64_t i = 0; i < half; ++i) {
        double angle =
            position * std::pow(base, -static_cast<double>(i) / half);
        double cosine = std::cos(angle),
               sine = std::sin(angle) * (op.getInverse() ? -1 : 1);
        for (int64_t h = 0; h < result.dim(1); ++h) {
          double first = result(t, h, i), second = result(t, h, i + half);
          result(t, h, i) = first * cosine - second * sine;
          result(t, h, i + half) = second * cosine + first * sine;
        }
      }
    }
  }
  results.push_back(std::move(result));
  return success();
}

LogicalResult oracle::define(LogNScaleOp op, Operands operands,
                             Results &results, const Call &call) {
  Tensor result(*operands[0]);
  int64_t tokens = call.tokens(), width = tokens ? result.size() / tokens : 0;
  for (const Segment &segment : call.segments)
    for (int64_t t = segment.begin; t < segment.end; ++t) {
      double position = segment.position + (t - segment.begin);
      double factor = std::max(1.0, std::log(position + 1) /
                                        std::log(double(op.getTrained())));
      for (int64_t c = t * width; c < (t + 1) * width; ++c)
        result.data[c] *= factor;
    }
  results.push_back(std::move(result));
  return success();
}

//===----------------------------------------------------------------------===//
// Dropout
//===----------------------------------------------------------------------===//

static uint32_t mix(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7FEB352D;
  x = (x ^ (x >> 15)) * 0x846CA68B;
  return x ^ (x >> 16);
}

LogicalResult oracle::define(DropoutOp op, Operands operands, Results &results,
                             const Call &) {
  Tensor result(*operands[0]);
  auto key = static_cast<uint32_t>(static_cast<int64_t>(operands[1]->data[0]));
  double rate = op.getRate().convertToDouble();
  int64_t rows = result.dim(0), width = rows ? result.size() / rows : 0;
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t j = 0; j < width; ++j) {
      uint32_t row = mix(key ^ static_cast<uint32_t>(t) * 0x9E3779B9);
      uint32_t hash = mix(row ^ static_cast<uint32_t>(j) * 0x9E3779B9);
      bool leftOut = static_cast<int32_t>(hash) + 0x1p31 < rate * 0x1p32;
      result.data[t * width + j] *= leftOut ? 0 : 1 / (1 - rate);
    }
  results.push_back(std::move(result));
  return success();
}

//===----------------------------------------------------------------------===//
// Sums and shapes
//===----------------------------------------------------------------------===//

LogicalResult oracle::define(ReduceTokensOp op, Operands operands,
                             Results &results, const Call &) {
  Tensor result(op.getResult().getType().getShape());
  for (int64_t i = 0; i < operands[0]->size(); ++i)
    result.data[i % result.size()] += operands[0]->data[i];
  results.push_back(std::move(result));
  return success();
}

LogicalResult oracle::define(ReduceDimOp op, Operands operands,
                             Results &results, const Call &) {
  SmallVector<int64_t> shape(operands[0]->shape);
  int64_t width = shape.back();
  shape.back() = 1;
  Tensor result(shape);
  for (int64_t i = 0; i < operands[0]->size(); ++i)
    result.data[i / width] += operands[0]->data[i];
  results.push_back(std::move(result));
  return success();
}

LogicalResult oracle::define(ReshapeOp op, Operands operands, Results &results,
                             const Call &) {
  SmallVector<int64_t> shape(op.getResult().getType().getShape());
  if (!shape.empty() && ShapedType::isDynamic(shape.front()))
    shape.front() = operands[0]->dim(0);
  results.emplace_back(shape, operands[0]->data);
  return success();
}

/// Copies `part` to or from the indices of `whole` that start at `offset` along
/// `dim`.
template <typename Copy>
static void forEachPair(ArrayRef<int64_t> part, ArrayRef<int64_t> whole,
                        int64_t dim, int64_t offset, Copy copy) {
  int64_t inner = 1, outer = 1;
  for (int64_t size : part.take_front(dim))
    outer *= size;
  for (int64_t size : part.drop_front(dim + 1))
    inner *= size;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t d = 0; d < part[dim]; ++d)
      for (int64_t i = 0; i < inner; ++i)
        copy((o * part[dim] + d) * inner + i,
             (o * whole[dim] + offset + d) * inner + i);
}

LogicalResult oracle::define(SliceOp op, Operands operands, Results &results,
                             const Call &) {
  const Tensor &whole = *operands[0];
  SmallVector<int64_t> shape(whole.shape);
  shape[op.getDim()] = op.getSize();
  Tensor result(shape);
  forEachPair(
      shape, whole.shape, op.getDim(), op.getOffset(),
      [&](int64_t to, int64_t from) { result.data[to] = whole.data[from]; });
  results.push_back(std::move(result));
  return success();
}

LogicalResult oracle::define(ConcatOp op, Operands operands, Results &results,
                             const Call &) {
  SmallVector<int64_t> shape(operands[0]->shape);
  shape[op.getDim()] = op.getResult().getType().getDimSize(op.getDim());
  Tensor result(shape);
  int64_t offset = 0;
  for (const Tensor *part : operands) {
    forEachPair(
        part->shape, shape, op.getDim(), offset,
        [&](int64_t from, int64_t to) { result.data[to] = part->data[from]; });
    offset += part->dim(op.getDim());
  }
  results.push_back(std::move(result));
  return success();
}
