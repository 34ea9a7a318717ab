//===- GradientCoverageTest.cpp - every rule of differentiation -----------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The dialect says which operations have a rule; each must have a maker of
// random checks here, and each floating-point operand a gradient.
//
//===----------------------------------------------------------------------===//

#include "AdjointCheck.h"
#include "RandomStacks.h"

#include "hybrid/Hybrid/HybridDialect.h"
#include "hybrid/Hybrid/HybridOps.h"
#include "llvm/Support/FormatVariadic.h"

#include <gtest/gtest.h>
#include <map>

using namespace mlir;
using namespace hybrid;
using namespace hybrid::cases;
using namespace hybrid::oracle;
using llvm::formatv;

namespace {

using Shape = SmallVector<int64_t>;

Tensor uniform(Random &random, ArrayRef<int64_t> shape, double least = -1,
               double most = 1) {
  Tensor tensor(shape);
  for (double &x : tensor.data)
    x = random.uniform(least, most);
  return tensor;
}

/// `tensor<?x2x3xf32>` for [tokens, 2, 3]; without tokens the shape as it is.
std::string typeOf(ArrayRef<int64_t> shape, bool tokens = true,
                   StringRef element = "f32") {
  std::string text = "tensor<";
  for (auto [dim, size] : llvm::enumerate(shape))
    text += (tokens && dim == 0 ? "?" : std::to_string(size)) + "x";
  return text + element.str() + ">";
}

/// A few sequences, 0 and 1 token long among them.
Call randomCall(Random &random) {
  SmallVector<int64_t> lengths = {random.between(1, 4), random.between(0, 1),
                                  random.between(0, 3)};
  Call call = Call::packed(lengths);
  for (Segment &segment : call.segments)
    segment.position = random.pick({0, 0, 1, 5});
  return call;
}

struct Operand {
  std::string type;
  Tensor value;
};

/// `hybrid.<op>`, where $0, $1, … stand for the operands and what follows the
/// text is the type of the result.
AdjointCheck check(Random &random, const Call &call, StringRef text,
                   std::vector<Operand> operands, ArrayRef<int64_t> result,
                   StringRef resultType) {
  AdjointCheck made;
  made.call = call;
  std::string arguments, body = text.str();
  for (auto [n, operand] : llvm::enumerate(operands)) {
    arguments += formatv("{0}%a{1}: {2}", n ? ", " : "", n, operand.type);
    std::string mark = "$" + std::to_string(n);
    for (size_t at; (at = body.find(mark)) != std::string::npos;)
      body.replace(at, mark.size(), "%a" + std::to_string(n));
    made.arguments.push_back(operand.value);
  }
  made.text = formatv("func.func @main({0}) -> {1} {{\n  %y = hybrid.{2}\n  "
                      "return %y : {1}\n}\n",
                      arguments, resultType, body);
  made.cotangents = {uniform(random, result)};
  return made;
}

Operand segments() { return {"!hybrid.segments", Tensor()}; }

/// An operation of one operand whose result has its shape.
AdjointCheck elementwise(Random &random, const std::string &op,
                         Shape shape = {}, bool positional = false) {
  Call call = randomCall(random);
  if (shape.empty())
    shape = random.chance(50) ? Shape{0, 5} : Shape{0, 2, 3};
  shape[0] = call.tokens();
  std::string type = typeOf(shape);
  std::vector<Operand> operands = {{type, uniform(random, shape, -2, 2)}};
  if (positional)
    operands.push_back(segments());
  return check(random, call, op + " : " + type, operands, shape, type);
}

/// Up or down; the oracle rounds neither.
AdjointCheck cast(Random &random) {
  Call call = randomCall(random);
  Shape shape = {call.tokens(), 5};
  bool widens = random.chance(50);
  std::string narrow = typeOf(shape, true, "bf16"), wide = typeOf(shape);
  std::string from = widens ? narrow : wide, to = widens ? wide : narrow;
  return check(random, call, "cast $0 : " + from + " to " + to,
               {{from, uniform(random, shape, -2, 2)}}, shape, to);
}

AdjointCheck dropout(Random &random) {
  Call call = randomCall(random);
  Shape shape = random.chance(50) ? Shape{0, 5} : Shape{0, 2, 3};
  shape[0] = call.tokens();
  Tensor key({1}, {static_cast<double>(static_cast<int32_t>(
                      static_cast<uint32_t>(random.next())))});
  return check(
      random, call, "dropout $0, $1 rate 0.4 : " + typeOf(shape),
      {{typeOf(shape), uniform(random, shape)}, {"tensor<1xi32>", key}}, shape,
      typeOf(shape));
}

AdjointCheck binary(Random &random, const std::string &op) {
  Call call = randomCall(random);
  int64_t tokens = call.tokens();
  Shape a = {tokens, 2, 3};
  bool stretched = random.chance(60);
  Shape b = a;
  if (stretched)
    b = random.pick(
        {Shape{2, 3}, Shape{2, 1}, Shape{1, 3}, Shape{3}, Shape{1}, Shape{}});
  else if (random.chance(50))
    b = {tokens, 2, 1};
  std::string left = typeOf(a), right = typeOf(b, !stretched);
  return check(random, call, op + " $0, $1 : " + left + ", " + right,
               {{left, uniform(random, a)}, {right, uniform(random, b)}}, a,
               left);
}

AdjointCheck normalize(Random &random) {
  return elementwise(random, random.chance(50)
                                 ? "normalize rms $0 epsilon 1.0e-2"
                                 : "normalize l2 $0 epsilon 1.0e-2");
}

AdjointCheck rotary(Random &random) {
  int64_t dim = random.pick({2, 4, 6});
  std::string text = formatv("rotary $0, $1 base {0}.0 dim {1}",
                             random.pick({10, 10000}), dim);
  // Dynamic NTK needs more than 2 channels.
  if (dim > 2 && random.chance(40))
    text += " ntk 2.0 original 3";
  return elementwise(random, text + (random.chance(50) ? " inverse" : ""),
                     {0, 2, 6}, /*positional=*/true);
}

AdjointCheck reshape(Random &random) {
  Call call = randomCall(random);
  Shape from = {call.tokens(), 6}, to = {call.tokens(), 2, 3};
  if (random.chance(50))
    std::swap(from, to);
  return check(random, call,
               "reshape $0 : " + typeOf(from) + " -> " + typeOf(to),
               {{typeOf(from), uniform(random, from)}}, to, typeOf(to));
}

AdjointCheck slice(Random &random) {
  Call call = randomCall(random);
  int64_t dim = random.between(1, 2), offset = random.between(0, 2),
          size = random.between(1, 4 - offset);
  Shape from = {call.tokens(), 4, 4}, to = from;
  to[dim] = size;
  return check(random, call,
               formatv("slice $0 dim {0} from {1} size {2} : {3} -> {4}", dim,
                       offset, size, typeOf(from), typeOf(to))
                   .str(),
               {{typeOf(from), uniform(random, from)}}, to, typeOf(to));
}

AdjointCheck concat(Random &random) {
  Call call = randomCall(random);
  int64_t dim = random.between(1, 2);
  Shape a = {call.tokens(), 3, 3}, b = a, to = a;
  a[dim] = random.between(1, 3);
  b[dim] = random.between(1, 3);
  to[dim] = a[dim] + b[dim];
  return check(
      random, call,
      formatv("concat $0, $1 dim {0} : ({1}, {2}) -> {3}", dim, typeOf(a),
              typeOf(b), typeOf(to))
          .str(),
      {{typeOf(a), uniform(random, a)}, {typeOf(b), uniform(random, b)}}, to,
      typeOf(to));
}

AdjointCheck product(Random &random) {
  Call call = randomCall(random);
  int64_t rows = random.between(1, 4), depth = random.between(1, 4),
          columns = random.between(1, 4);
  bool transposeA = random.chance(50), transposeB = random.chance(50);
  Shape a = transposeA ? Shape{depth, rows} : Shape{rows, depth};
  Shape b = transposeB ? Shape{columns, depth} : Shape{depth, columns};
  auto fixed = [](ArrayRef<int64_t> shape) { return typeOf(shape, false); };
  Shape to = {rows, columns};
  return check(random, call,
               formatv("product $0, $1 {0}{1}: ({2}, {3}) -> {4}",
                       transposeA ? "transpose_a " : "",
                       transposeB ? "transpose_b " : "", fixed(a), fixed(b),
                       fixed(to))
                   .str(),
               {{fixed(a), uniform(random, a)}, {fixed(b), uniform(random, b)}},
               to, fixed(to));
}

Operand randomIds(Random &random, int64_t tokens, int64_t limit, bool ignored) {
  Tensor ids({tokens});
  for (double &id : ids.data)
    id = ignored && random.chance(25) ? -100 : random.between(0, limit - 1);
  return {"tensor<?xi32>", ids};
}

AdjointCheck embed(Random &random) {
  Call call = randomCall(random);
  int64_t tokens = call.tokens(), vocab = random.between(1, 5);
  Shape table = {vocab, 3}, to = {tokens, 3};
  std::string text = "embed $0, $1 : (tensor<?xi32>, " + typeOf(table, false) +
                     ") -> " + typeOf(to);
  return check(random, call, text,
               {randomIds(random, tokens, vocab, false),
                {typeOf(table, false), uniform(random, table)}},
               to, typeOf(to));
}

AdjointCheck crossEntropy(Random &random) {
  Call call = randomCall(random);
  int64_t tokens = call.tokens(), vocab = random.between(1, 5);
  Shape logits = {tokens, vocab}, to = {tokens};
  std::string text = "cross_entropy $0, $1, $2 : (" + typeOf(logits) +
                     ", tensor<?xi32>, tensor<?xf32>) -> tensor<?xf32>";
  return check(random, call, text,
               {{typeOf(logits), uniform(random, logits, -3, 3)},
                randomIds(random, tokens, vocab, true),
                {typeOf(to), uniform(random, to, 0, 2)}},
               to, typeOf(to));
}

AdjointCheck shortConv(Random &random) {
  Call call = randomCall(random);
  int64_t channels = random.between(1, 4), kernel = random.between(1, 5);
  return {shortConvText(channels, kernel, false),
          call,
          {uniform(random, {call.tokens(), channels}),
           uniform(random, {channels, kernel}), Tensor()},
          {uniform(random, {call.tokens(), channels})}};
}

AdjointCheck attention(Random &random) {
  Call call = randomCall(random);
  int64_t tokens = call.tokens();
  AttentionShape shape;
  shape.kvHeads = random.between(1, 2);
  shape.heads = shape.kvHeads * random.between(1, 3);
  shape.dim = random.between(1, 4);
  shape.valueDim = random.between(1, 4);
  shape.scale = random.uniform(0.3, 1.5);
  shape.windows.clear();
  shape.sinks.clear();
  for (int64_t head = 0; head < shape.heads; ++head) {
    shape.windows.push_back(random.pick({0, 1, 2, 3, 50}));
    shape.sinks.push_back(shape.windows.back() ? random.between(0, 3) : 0);
  }
  return {shape.text(),
          call,
          {uniform(random, {tokens, shape.heads, shape.dim}),
           uniform(random, {tokens, shape.kvHeads, shape.dim}),
           uniform(random, {tokens, shape.kvHeads, shape.valueDim}), Tensor()},
          {uniform(random, {tokens, shape.heads, shape.valueDim}), Tensor()}};
}

AdjointCheck recurrence(Random &random) {
  Call call = randomCall(random);
  call.slots = call.segments.size() + 1;
  int64_t tokens = call.tokens();
  RecurrenceShape shape;
  shape.update = random.chance(50) ? "delta" : "additive";
  shape.kvHeads = random.between(1, 2);
  shape.heads = shape.kvHeads * random.between(1, 2);
  shape.keyDim = random.between(1, 3);
  shape.valueDim = random.between(1, 3);
  shape.decayDim = random.pick({int64_t(0), int64_t(1), shape.keyDim});
  shape.beta = shape.update == std::string("delta") && random.chance(70);
  shape.state = random.chance(60);
  shape.scale = random.uniform(0.3, 1.5);
  if (random.chance(50)) {
    shape.stride = random.between(1, 3);
    shape.window = shape.stride * random.between(1, 3);
  }
  AdjointCheck made{shape.text(), call, {}, {}};
  made.arguments = {
      uniform(random, {tokens, shape.heads, shape.keyDim}),
      l2norm(uniform(random, {tokens, shape.kvHeads, shape.keyDim})),
      uniform(random, {tokens, shape.kvHeads, shape.valueDim})};
  if (shape.decayDim)
    made.arguments.push_back(
        uniform(random, {tokens, shape.heads, shape.decayDim}, -1, 0));
  if (shape.beta)
    made.arguments.push_back(uniform(random, {tokens, shape.heads}, 0, 2));
  made.arguments.emplace_back();
  made.cotangents = {uniform(random, {tokens, shape.heads, shape.valueDim})};
  if (shape.state) {
    made.arguments.push_back(uniform(random, shape.stateShape(call.slots)));
    made.cotangents.push_back(uniform(random, shape.stateShape(call.slots)));
  }
  return made;
}

using Maker = std::function<AdjointCheck(Random &)>;

const std::map<std::string, Maker> &makers() {
  auto unary = [](std::string op) {
    return [=](Random &random) { return elementwise(random, op + " $0"); };
  };
  auto stretched = [](std::string op) {
    return [=](Random &random) { return binary(random, op); };
  };
  static const std::map<std::string, Maker> table = {
      {"add", stretched("add")},
      {"attention", attention},
      {"cast", cast},
      {"concat", concat},
      {"cross_entropy", crossEntropy},
      {"dropout", dropout},
      {"embed", embed},
      {"exp", unary("exp")},
      {"log_n_scale",
       [](Random &random) {
         return elementwise(random, "log_n_scale $0, $1 trained 2", {0, 2, 3},
                            /*positional=*/true);
       }},
      {"log_sigmoid", unary("log_sigmoid")},
      {"mul", stretched("mul")},
      {"neg", unary("neg")},
      {"normalize", normalize},
      {"product", product},
      {"recurrence", recurrence},
      {"reshape", reshape},
      {"rotary", rotary},
      {"scale",
       [](Random &random) { return elementwise(random, "scale $0 by -2.5"); }},
      {"short_conv", shortConv},
      {"sigmoid", unary("sigmoid")},
      {"silu", unary("silu")},
      {"slice", slice},
      {"softplus", unary("softplus")},
      {"sub", stretched("sub")},
  };
  return table;
}

/// Operands that have no gradient though they are numbers.
bool isData(StringRef op, unsigned operand) {
  return op == "cross_entropy" && operand == 2; // the caller's weights
}

} // namespace

TEST(GradientCoverage, EveryDifferentiableOperandOfEveryOperation) {
  MLIRContext context;
  context.loadDialect<HybridDialect>();
  unsigned operations = 0;
  for (RegisteredOperationName op : context.getRegisteredOperations()) {
    if (op.getDialectNamespace() != "hybrid" ||
        !op.hasInterface<DifferentiableOpInterface>())
      continue;
    ++operations;
    std::string name = op.stripDialect().str();
    auto maker = makers().find(name);
    if (maker == makers().end()) {
      ADD_FAILURE() << "hybrid." << name
                    << " is differentiable, but nothing makes random checks of "
                       "it here; add a maker";
      continue;
    }
    for (uint64_t seed = 0; seed < 6; ++seed) {
      Random random(seed * 31 + 7);
      AdjointCheck made = maker->second(random);
      SCOPED_TRACE(name + ", seed " + std::to_string(seed) + "\n" + made.text);
      made.run();
      std::vector<Tensor> gradients = made.adjoint();
      Program program(made.text);
      Operation &first = program.main().getBody().front().front();
      for (auto [n, operand] : llvm::enumerate(first.getOperands())) {
        auto type = dyn_cast<RankedTensorType>(operand.getType());
        if (type && type.getElementType().isF32() && !isData(name, n))
          EXPECT_EQ(gradients[n].rank(), type.getRank())
              << "operand " << n << " has no gradient";
      }
    }
  }
  EXPECT_EQ(operations, makers().size());
}
