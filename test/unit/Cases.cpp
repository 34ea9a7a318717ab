//===- Cases.cpp - inputs and functions the cases are made of -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Cases.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <numeric>

using namespace hybrid::cases;
using llvm::ArrayRef;
using llvm::formatv;
using llvm::SmallVector;

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

Tensor hybrid::cases::gen(double c, ArrayRef<int64_t> shape) {
  Tensor tensor(shape);
  for (int64_t n = 0; n < tensor.size(); ++n)
    tensor.data[n] = std::sin(0.7 * n + c);
  return tensor;
}

Tensor hybrid::cases::wave(double a, int64_t tokens, int64_t width) {
  Tensor tensor({tokens, 1, width});
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t i = 0; i < width; ++i)
      tensor(t, 0, i) = std::sin(a + 1.3 * t + 0.7 * i);
  return tensor;
}

Tensor hybrid::cases::filled(ArrayRef<int64_t> shape, double value) {
  Tensor tensor(shape);
  std::fill(tensor.data.begin(), tensor.data.end(), value);
  return tensor;
}

Tensor hybrid::cases::map(Tensor tensor, double (*function)(double)) {
  for (double &value : tensor.data)
    value = function(value);
  return tensor;
}

Tensor hybrid::cases::reshaped(Tensor tensor, ArrayRef<int64_t> shape) {
  return Tensor(shape, std::move(tensor.data));
}

Tensor hybrid::cases::l2norm(Tensor tensor) {
  int64_t width = tensor.shape.back();
  for (int64_t start = 0; start < tensor.size(); start += width) {
    double sum = 1e-6;
    for (int64_t i = start; i < start + width; ++i)
      sum += tensor.data[i] * tensor.data[i];
    for (int64_t i = start; i < start + width; ++i)
      tensor.data[i] /= std::sqrt(sum);
  }
  return tensor;
}

std::vector<double> Expected::of(ArrayRef<double> data) const {
  if (!isSum)
    return data.slice(first, values.size()).vec();
  return {std::accumulate(data.begin() + first, data.end(), 0.0)};
}

Tensor hybrid::cases::rows(const Tensor &tensor, int64_t begin, int64_t end) {
  SmallVector<int64_t> shape(tensor.shape);
  int64_t width = shape.front() == 0 ? 0 : tensor.size() / shape.front();
  shape.front() = end - begin;
  return Tensor(shape, std::vector<double>(tensor.data.begin() + begin * width,
                                           tensor.data.begin() + end * width));
}

Tensor hybrid::cases::widened(const Tensor &tensor, ArrayRef<int64_t> shape) {
  Tensor wide(shape);
  for (int64_t n = 0; n < tensor.size(); ++n) {
    int64_t rest = n, place = 0, stride = 1;
    for (int64_t d = tensor.rank() - 1; d >= 0; --d) {
      place += rest % tensor.dim(d) * stride;
      rest /= tensor.dim(d);
      stride *= shape[d];
    }
    wide.data[place] = tensor.data[n];
  }
  return wide;
}

Tensor hybrid::cases::stacked(ArrayRef<Tensor> parts) {
  SmallVector<int64_t> shape(parts.front().shape);
  shape.front() = 0;
  std::vector<double> data;
  for (const Tensor &part : parts) {
    shape.front() += part.dim(0);
    data.insert(data.end(), part.data.begin(), part.data.end());
  }
  return Tensor(shape, std::move(data));
}

double hybrid::cases::sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double hybrid::cases::softplus(double x) { return std::log1p(std::exp(x)); }

static GdnFixture makeFixture(int64_t tokens, double q, double k, double v,
                              double g, double b) {
  GdnFixture fixture = GdnFixture().slice(0, 0);
  fixture.q = gen(q, {tokens, 1, 3});
  fixture.k = l2norm(gen(k, {tokens, 1, 3}));
  fixture.v = gen(v, {tokens, 1, 2});
  fixture.decay =
      map(gen(g, {tokens, 1, 1}), [](double x) { return -softplus(x); });
  fixture.beta = map(gen(b, {tokens, 1}), sigmoid);
  return fixture;
}

GdnFixture::GdnFixture()
    : q(gen(0.1, {5, 1, 3})), k(l2norm(gen(0.2, {5, 1, 3}))),
      v(gen(0.3, {5, 1, 2})),
      decay(map(gen(0.4, {5, 1, 1}), [](double x) { return -softplus(x); })),
      beta(map(gen(0.5, {5, 1}), sigmoid)) {}

GdnFixture GdnFixture::slice(int64_t begin, int64_t end) const {
  GdnFixture part(*this);
  for (Tensor *tensor : {&part.q, &part.k, &part.v, &part.decay, &part.beta})
    *tensor = rows(*tensor, begin, end);
  return part;
}

GdnFixture hybrid::cases::gdnPads() {
  return makeFixture(3, 2.4, 2.0, 2.1, 2.2, 2.3);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// A floating-point literal that reads back as the same number.
static std::string exact(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.17e", value);
  return text;
}

SmallVector<int64_t> RecurrenceShape::stateShape(int64_t slots) const {
  if (window)
    return {slots, window / stride, heads, keyDim, valueDim};
  return {slots, heads, keyDim, valueDim};
}

/// Parts of the text that an operation and its adjoint have in common.
struct RecurrenceShape::Pieces {
  SmallVector<std::string> arguments, operandTypes, gradientTypes;
  std::string clauses, output, state, attributes;
};

RecurrenceShape::Pieces RecurrenceShape::pieces() const {
  Pieces p;
  auto add = [&](const char *name, std::string type, bool operand = true) {
    p.arguments.push_back(formatv("%{0}: {1}", name, type));
    if (operand) {
      p.operandTypes.push_back(type);
      p.gradientTypes.push_back(type);
    }
  };
  p.output = formatv("tensor<?x{0}x{1}xf32>", heads, valueDim);
  p.state = formatv("tensor<?x{0}{1}x{2}x{3}xf32, #hybrid.slots>",
                    window ? std::to_string(window / stride) + "x" : "", heads,
                    keyDim, valueDim);
  add("q", formatv("tensor<?x{0}x{1}xf32>", heads, keyDim));
  add("k", formatv("tensor<?x{0}x{1}xf32>", kvHeads, keyDim));
  add("v", formatv("tensor<?x{0}x{1}xf32>", kvHeads, valueDim));
  p.operandTypes.push_back("!hybrid.segments");
  if (decayDim) {
    add("decay", formatv("tensor<?x{0}x{1}xf32>", heads, decayDim));
    p.clauses += " decay(%decay)";
  }
  if (beta) {
    add("beta", formatv("tensor<?x{0}xf32>", heads));
    p.clauses += " beta(%beta)";
  }
  add("segments", "!hybrid.segments", /*operand=*/false);
  if (state) {
    add("initial", p.state);
    p.clauses += " initial(%initial)";
  }
  p.attributes = formatv(" scale {0}", exact(scale));
  if (window)
    p.attributes += formatv(" window {0} stride {1}", window, stride).str();
  return p;
}

std::string RecurrenceShape::text() const {
  Pieces p = pieces();
  std::string results =
      state ? formatv("({0}, {1})", p.output, p.state) : p.output;
  return formatv("func.func @main({0}) -> {1} {{\n"
                 "  %r:{2} = hybrid.recurrence {3} %q, %k, %v, %segments{4}{5} "
                 ": ({6}) -> {1}\n"
                 "  return {7} : {8}\n}\n",
                 llvm::join(p.arguments, ", "), results, state ? 2 : 1, update,
                 p.clauses, p.attributes, llvm::join(p.operandTypes, ", "),
                 state ? "%r#0, %r#1" : "%r#0",
                 state ? p.output + ", " + p.state : p.output);
}

std::string RecurrenceShape::gradientText(bool finalCotangent) const {
  Pieces p = pieces();
  p.arguments.push_back("%dout: " + p.output);
  p.operandTypes.insert(p.operandTypes.begin() + 4, p.output);
  if (finalCotangent) {
    p.arguments.push_back("%dfinal: " + p.state);
    p.operandTypes.push_back(p.state);
    p.clauses += " dfinal(%dfinal)";
  }
  SmallVector<std::string> results;
  for (size_t i = 0; i < p.gradientTypes.size(); ++i)
    results.push_back(formatv("%r#{0}", i));
  return formatv("func.func @main({0}) -> ({1}) {{\n"
                 "  %r:{2} = hybrid.recurrence_grad {3} %q, %k, %v, %segments, "
                 "%dout{4}{5} : ({6}) -> ({1})\n"
                 "  return {7} : {1}\n}\n",
                 llvm::join(p.arguments, ", "),
                 llvm::join(p.gradientTypes, ", "), results.size(), update,
                 p.clauses, p.attributes, llvm::join(p.operandTypes, ", "),
                 llvm::join(results, ", "));
}

static std::string listOf(ArrayRef<int64_t> entries) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(entries, stream);
  return text;
}

std::string AttentionShape::gradientText() const {
  std::string q = formatv("tensor<?x{0}x{1}xf32>", heads, dim);
  std::string k = formatv("tensor<?x{0}x{1}xf32>", kvHeads, dim);
  std::string v = formatv("tensor<?x{0}x{1}xf32>", kvHeads, valueDim);
  std::string o = formatv("tensor<?x{0}x{1}xf32>", heads, valueDim);
  std::string lse = formatv("tensor<?x{0}xf32>", heads);
  std::string attributes =
      formatv("scale {0} windows [{1}] sinks [{2}]", exact(scale),
              listOf(windows), listOf(sinks));
  return formatv(
      "func.func @main(%q: {0}, %k: {1}, %v: {2}, %s: !hybrid.segments, "
      "%dout: {3})\n"
      "    -> ({3}, {0}, {1}, {2}) {{\n"
      "  %o, %lse = hybrid.attention %q, %k, %v, %s {5}\n"
      "    : ({0}, {1}, {2}, !hybrid.segments) -> ({3}, {4})\n"
      "  %dq, %dk, %dv = hybrid.attention_grad %q, %k, %v, %o, %lse, %dout, %s "
      "{5}\n"
      "    : ({0}, {1}, {2}, {3}, {4}, {3}, !hybrid.segments) -> ({0}, {1}, "
      "{2})\n"
      "  return %o, %dq, %dk, %dv : {3}, {0}, {1}, {2}\n}\n",
      q, k, v, o, lse, attributes);
}

std::string AttentionShape::text() const {
  std::string q = formatv("tensor<?x{0}x{1}xf32>", heads, dim);
  std::string k = formatv("tensor<?x{0}x{1}xf32>", kvHeads, dim);
  std::string v = formatv("tensor<?x{0}x{1}xf32>", kvHeads, valueDim);
  std::string o = formatv("tensor<?x{0}x{1}xf32>", heads, valueDim);
  std::string attributes =
      formatv("scale {0} windows [{1}] sinks [{2}]", exact(scale),
              listOf(windows), listOf(sinks));
  if (!cached) {
    std::string lse = formatv("tensor<?x{0}xf32>", heads);
    return formatv("func.func @main(%q: {0}, %k: {1}, %v: {2}, %segments: "
                   "!hybrid.segments)\n"
                   "    -> ({3}, {4}) {{\n"
                   "  %o, %lse = hybrid.attention %q, %k, %v, %segments {5}\n"
                   "    : ({0}, {1}, {2}, !hybrid.segments) -> ({3}, {4})\n"
                   "  return %o, %lse : {3}, {4}\n}\n",
                   q, k, v, o, lse, attributes);
  }
  auto cache = [&](int64_t width) -> std::string {
    return formatv("tensor<?x{0}x?x{1}xf32, #hybrid.slots<rows = "
                   "affine_map<()[s0, s1, s2, s3, s4, s5] -> (s4)>>>",
                   kvHeads, width);
  };
  return formatv(
      "func.func @main(%q: {0}, %k: {1}, %v: {2}, %kc: {3}, %vc: {4},\n"
      "                %segments: !hybrid.segments) -> ({5}, {3}, {4}) {{\n"
      "  %r:3 = hybrid.attention_cached %q, %k, %v, %kc, %vc, %segments {6}\n"
      "    : ({0}, {1}, {2}, {3}, {4}, !hybrid.segments) -> ({5}, {3}, {4})\n"
      "  return %r#0, %r#1, %r#2 : {5}, {3}, {4}\n}\n",
      q, k, v, cache(dim), cache(valueDim), o, attributes);
}

std::string hybrid::cases::shortConvText(int64_t channels, int64_t kernel,
                                         bool state) {
  std::string x = formatv("tensor<?x{0}xf32>", channels);
  std::string w = formatv("tensor<{0}x{1}xf32>", channels, kernel);
  std::string s =
      formatv("tensor<?x{0}x{1}xf32, #hybrid.slots>", kernel - 1, channels);
  if (!state)
    return formatv("func.func @main(%x: {0}, %w: {1}, %segments: "
                   "!hybrid.segments) -> {0} {{\n"
                   "  %y = hybrid.short_conv %x, %w, %segments : ({0}, {1}, "
                   "!hybrid.segments) -> {0}\n"
                   "  return %y : {0}\n}\n",
                   x, w);
  return formatv("func.func @main(%x: {0}, %w: {1}, %segments: "
                 "!hybrid.segments, %s: {2})\n"
                 "    -> ({0}, {2}) {{\n"
                 "  %r:2 = hybrid.short_conv %x, %w, %segments state(%s)\n"
                 "    : ({0}, {1}, !hybrid.segments, {2}) -> ({0}, {2})\n"
                 "  return %r#0, %r#1 : {0}, {2}\n}\n",
                 x, w, s);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// Whether the type is cut along the tokens, or is a state.
static bool isStream(mlir::Type type) {
  auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
  return tensor && !tensor.getEncoding() && tensor.isDynamicDim(0);
}
static bool isState(mlir::Type type) {
  auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
  return tensor && tensor.getEncoding();
}

std::vector<Tensor> hybrid::cases::evaluateInPieces(const Case &known,
                                                    mlir::func::FuncOp main,
                                                    ArrayRef<int64_t> lengths,
                                                    Evaluate evaluate) {
  std::vector<Tensor> arguments = known.arguments, results;
  std::vector<std::vector<Tensor>> streams(main.getNumResults());
  Call call = known.call;
  int64_t first = call.segments[0].position, done = 0;
  for (int64_t length : lengths) {
    for (auto [i, type] : llvm::enumerate(main.getArgumentTypes()))
      if (isStream(type))
        arguments[i] = rows(known.arguments[i], done, done + length);
    call.segments = {{0, length, known.call.segments[0].slot, first + done}};
    results = evaluate(arguments, call);
    if (results.empty())
      return {};
    // States are results in the order in which they are arguments.
    size_t argument = 0;
    for (auto [i, type] : llvm::enumerate(main.getResultTypes())) {
      if (isStream(type))
        streams[i].push_back(results[i]);
      if (!isState(type))
        continue;
      while (!isState(main.getArgumentTypes()[argument]))
        ++argument;
      arguments[argument++] = results[i];
    }
    done += length;
  }
  for (auto [i, parts] : llvm::enumerate(streams))
    if (!parts.empty())
      results[i] = stacked(parts);
  return results;
}
