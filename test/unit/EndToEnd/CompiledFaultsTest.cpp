//===- CompiledFaultsTest.cpp - faults that are properties of the code ---===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Public faults whose right answer is no list of numbers: memory that must not
// be touched, results that must be equal, lengths that must not matter.
//
//===----------------------------------------------------------------------===//

#include "CompiledFunction.h"
#include "PlacedMemory.h"

using namespace hybrid;
using namespace hybrid::cases;
using namespace hybrid::test;

namespace {

cpu::Level bestLevel() { return cpu::levelsHere().back(); }

/// Largest difference relative to the largest value, or to 1e-3 where all are 0
/// but for rounding; infinite where a value is not finite.
double distance(const Tensor &found, const Tensor &expected) {
  double worst = 0, largest = 1e-3;
  for (auto [x, y] : llvm::zip_equal(found.data, expected.data)) {
    if (!std::isfinite(x))
      return std::numeric_limits<double>::infinity();
    worst = std::max(worst, std::abs(x - y));
    largest = std::max(largest, std::abs(y));
  }
  return worst / largest;
}

void expectNear(llvm::ArrayRef<Tensor> found, llvm::ArrayRef<Tensor> expected,
                double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (auto [i, results] : llvm::enumerate(llvm::zip(found, expected))) {
    auto [x, y] = results;
    EXPECT_LT(distance(x, y), tolerance) << "result " << i;
  }
}

void expectSameBits(llvm::ArrayRef<Tensor> found,
                    llvm::ArrayRef<Tensor> expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (auto [i, results] : llvm::enumerate(llvm::zip(found, expected))) {
    auto [x, y] = results;
    EXPECT_EQ(x.data, y.data) << "result " << i;
  }
}

/// Random-looking arguments of a recurrence over `tokens` tokens; gates are
/// `gate` everywhere, or ordinary ones.
std::vector<Tensor> recurrenceArguments(const RecurrenceShape &shape,
                                        int64_t tokens, int64_t slots,
                                        std::optional<double> gate = {}) {
  std::vector<Tensor> arguments = {
      gen(0.1, {tokens, shape.heads, shape.keyDim}),
      l2norm(gen(0.2, {tokens, shape.kvHeads, shape.keyDim})),
      gen(0.3, {tokens, shape.kvHeads, shape.valueDim})};
  if (shape.decayDim) {
    Tensor decay = gen(0.4, {tokens, shape.heads, shape.decayDim});
    for (double &g : decay.data)
      g = gate ? *gate : -softplus(g) / 16;
    arguments.push_back(decay);
  }
  if (shape.beta)
    arguments.push_back(map(gen(0.5, {tokens, shape.heads}), sigmoid));
  arguments.push_back(Tensor());
  if (shape.state)
    arguments.push_back(gen(0.8, shape.stateShape(slots)));
  return arguments;
}

RecurrenceShape gla(int64_t heads, int64_t width) {
  RecurrenceShape shape;
  shape.heads = shape.kvHeads = heads;
  shape.keyDim = shape.valueDim = shape.decayDim = width;
  return shape;
}

RecurrenceShape gdn(int64_t heads, int64_t width) {
  RecurrenceShape shape = gla(heads, width);
  shape.update = "delta";
  shape.decayDim = 1;
  shape.beta = true;
  return shape;
}

AttentionShape attention(int64_t heads, int64_t kvHeads, int64_t width,
                         int64_t window = 0) {
  AttentionShape shape;
  shape.heads = heads;
  shape.kvHeads = kvHeads;
  shape.dim = shape.valueDim = width;
  shape.windows.assign(heads, window);
  shape.sinks.assign(heads, window ? 2 : 0);
  shape.scale = 1 / std::sqrt(double(width));
  return shape;
}

std::vector<Tensor> attentionArguments(const AttentionShape &shape,
                                       int64_t tokens) {
  return {gen(0.1, {tokens, shape.heads, shape.dim}),
          gen(0.2, {tokens, shape.kvHeads, shape.dim}),
          gen(0.3, {tokens, shape.kvHeads, shape.valueDim}), Tensor()};
}

} // namespace

//===----------------------------------------------------------------------===//
// Gates
//===----------------------------------------------------------------------===//

TEST(CompiledFaults, LIN_04_bounded_gates) {
  RecurrenceShape shape = gla(2, 128);
  CompiledFunction forward(shape.text(), bestLevel());
  CompiledFunction backward(shape.gradientText(), bestLevel());
  for (double bound : {-5.0, -1.0}) {
    SCOPED_TRACE(bound);
    std::vector<Tensor> arguments = recurrenceArguments(shape, 4096, 0, bound);
    Tensor o = forward.evaluate(arguments, Call::packed({4096})).at(0);
    for (double x : o.data)
      ASSERT_TRUE(std::isfinite(x));
    arguments.push_back(gen(0.9, {4096, 2, 128}));
    for (const Tensor &gradient :
         backward.evaluate(arguments, Call::packed({4096})))
      for (double x : gradient.data)
        ASSERT_TRUE(std::isfinite(x));
    for (Tensor &argument : arguments)
      if (argument.size())
        argument = rows(argument, 0, 256);
    expectNear(backward.evaluate(arguments, Call::packed({256})),
               backward.oracle(arguments, Call::packed({256})), 1e-4);
    arguments.pop_back();
    expectNear({rows(o, 0, 256)},
               forward.oracle(arguments, Call::packed({256})), 1e-5);
  }
}

/// T and N of the WY form enter every gradient.
TEST(CompiledFaults, LIN_05_gradients) {
  RecurrenceShape shape = gdn(1, 64);
  CompiledFunction backward(shape.gradientText(), bestLevel());
  Tensor decay({64, 1, 1});
  for (int64_t t = 0; t < 64; t += 2)
    decay(t, 0, 0) = -30;
  Tensor eighth = filled({64, 1, 64}, 0.125);
  std::vector<Tensor> arguments = {eighth,
                                   eighth,
                                   filled({64, 1, 64}, 1),
                                   decay,
                                   filled({64, 1}, 0.5),
                                   Tensor(),
                                   gen(0.9, {64, 1, 64})};
  expectNear(backward.evaluate(arguments, Call::packed({64})),
             backward.oracle(arguments, Call::packed({64})), 1e-5);
}

TEST(CompiledFaults, LIN_17_gradient_of_the_initial_state) {
  for (RecurrenceShape shape : {gla(2, 64), gdn(2, 64)}) {
    shape.state = true;
    CompiledFunction backward(shape.gradientText(), bestLevel());
    std::vector<Tensor> arguments = recurrenceArguments(shape, 512, 1, -0.01);
    for (double &x : arguments.back().data)
      x *= 0.1;
    arguments.push_back(gen(0.9, {512, 2, 64}));
    expectNear(backward.evaluate(arguments, Call::packed({512})),
               backward.oracle(arguments, Call::packed({512})), 1e-4);
  }
}

//===----------------------------------------------------------------------===//
// Lengths that are no multiple of a tile
//===----------------------------------------------------------------------===//

/// i - j is added to the score by two channels of the keys and queries. The
/// loss is a multiple of the mean of the outputs.
TEST(CompiledFaults, ATT_19_length_and_score_change) {
  AttentionShape shape = attention(1, 1, 64);
  CompiledFunction function(shape.gradientText(), bestLevel());
  for (int64_t tokens : {1, 127, 129, 1025}) {
    SCOPED_TRACE(tokens);
    std::vector<Tensor> arguments = attentionArguments(shape, tokens);
    for (int64_t t = 0; t < tokens; ++t) {
      arguments[0](t, 0, 62) = t / shape.scale;
      arguments[1](t, 0, 62) = 1;
      arguments[0](t, 0, 63) = 1 / shape.scale;
      arguments[1](t, 0, 63) = -t;
    }
    arguments.push_back(filled({tokens, 1, 64}, 1));
    expectNear(function.evaluate(arguments, Call::packed({tokens})),
               function.oracle(arguments, Call::packed({tokens})), 2e-3);
  }
}

//===----------------------------------------------------------------------===//
// Masked rows
//===----------------------------------------------------------------------===//

/// The score of the last row overflows to -inf, so it sees nothing; the loss
/// leaves it out. Nothing of it reaches the other rows.
TEST(CompiledFaults, ATT_05_masked_row) {
  AttentionShape shape = attention(1, 1, 8);
  CompiledFunction function(shape.gradientText(), bestLevel());
  std::vector<Tensor> arguments = attentionArguments(shape, 5);
  arguments.push_back(gen(0.9, {5, 1, 8}));
  for (int64_t c = 0; c < 8; ++c) {
    arguments[0](4, 0, c) = 3e38;
    arguments[1](4, 0, c) = -3e38;
    arguments.back()(4, 0, c) = 0;
  }
  std::vector<Tensor> results =
      function.evaluate(arguments, Call::packed({4, 1}));
  ASSERT_EQ(results.size(), 4u);
  for (const Tensor &result : results)
    EXPECT_EQ(rows(result, 4, 5).data, std::vector<double>(8, 0));
  for (Tensor &argument : arguments)
    if (argument.size())
      argument = rows(argument, 0, 4);
  std::vector<Tensor> without = function.evaluate(arguments, Call::packed({4}));
  for (Tensor &result : results)
    result = rows(result, 0, 4);
  expectSameBits(results, without);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// As f32 holds them: what a kernel leaves alone is compared too.
static std::vector<Tensor> rounded(std::vector<Tensor> arguments) {
  for (Tensor &argument : arguments)
    for (double &x : argument.data)
      x = float(x);
  return arguments;
}

/// The last of a packed row of sequences ends at the end of every tensor.
TEST(CompiledFaults, LIN_22_nothing_past_the_end_is_touched) {
  Call call = Call::packed({150, 0, 42, 64});
  RecurrenceShape delta = gdn(4, 64), additive = gla(4, 64);
  delta.state = additive.state = true;
  for (const RecurrenceShape &shape : {delta, additive})
    for (const std::string &text : {shape.text(), shape.gradientText()}) {
      CompiledFunction function(text, bestLevel());
      std::vector<Tensor> arguments =
          rounded(recurrenceArguments(shape, 256, 4));
      if (text == shape.gradientText())
        arguments.push_back(gen(0.9, {256, 4, 64}));
      std::vector<Tensor> expected = function.evaluate(arguments, call);
      function.runKernel = runBeforeGuardPages;
      expectSameBits(function.evaluate(arguments, call), expected);
    }
  for (int64_t window : {0, 20}) {
    AttentionShape shape = attention(4, 2, 64, window);
    CompiledFunction function(shape.gradientText(), bestLevel());
    std::vector<Tensor> arguments = attentionArguments(shape, 256);
    arguments.push_back(gen(0.9, {256, 4, 64}));
    std::vector<Tensor> expected = function.evaluate(arguments, call);
    function.runKernel = runBeforeGuardPages;
    expectSameBits(function.evaluate(arguments, call), expected);
  }
}

/// As cpu::runLoaded with `fill` behind the last element of every tensor.
static llvm::LogicalResult runWithTail(const cpu::LoadedKernel &kernel,
                                       tile::ProgramOp program,
                                       llvm::ArrayRef<tile::HostView> views,
                                       llvm::ArrayRef<int64_t> symbols,
                                       double fill) {
  auto setTails = [&](double value) {
    for (const tile::HostView &view : views) {
      int64_t last = view.offset + 1;
      for (auto [size, stride] : llvm::zip(view.sizes, view.strides))
        last += (size - 1) * stride;
      for (double &x : view.memory.drop_front(std::max<int64_t>(last, 0)))
        x = std::isnan(x) || x == fill ? value : x;
    }
  };
  setTails(fill);
  llvm::LogicalResult result = cpu::runLoaded(kernel, program, views, symbols);
  setTails(std::numeric_limits<double>::quiet_NaN());
  return result;
}

/// 65 rows: what lies behind them in memory changes no bit.
TEST(CompiledFaults, LIN_15_rows_past_the_end) {
  Call call = Call::packed({65});
  std::vector<std::pair<std::string, std::vector<Tensor>>> functions;
  for (const RecurrenceShape &shape : {gla(2, 16), gdn(2, 16)}) {
    functions.push_back({shape.text(), recurrenceArguments(shape, 65, 0)});
    functions.push_back(
        {shape.gradientText(), recurrenceArguments(shape, 65, 0)});
    functions.back().second.push_back(gen(0.9, {65, 2, 16}));
  }
  AttentionShape shape = attention(2, 1, 16);
  functions.push_back({shape.gradientText(), attentionArguments(shape, 65)});
  functions.back().second.push_back(gen(0.9, {65, 2, 16}));
  for (const auto &[text, arguments] : functions) {
    CompiledFunction function(text, bestLevel());
    std::vector<Tensor> expected;
    for (double fill : {0.0, std::numeric_limits<double>::quiet_NaN(),
                        std::numeric_limits<double>::infinity()}) {
      function.runKernel = [fill](const cpu::LoadedKernel &kernel,
                                  tile::ProgramOp program,
                                  llvm::ArrayRef<tile::HostView> views,
                                  llvm::ArrayRef<int64_t> symbols) {
        return runWithTail(kernel, program, views, symbols, fill);
      };
      std::vector<Tensor> results = function.evaluate(arguments, call);
      if (expected.empty())
        expected = results;
      expectSameBits(results, expected);
    }
  }
}

/// Operands and results are columns of wider rows that lie far apart.
TEST(CompiledFaults, SIZ_05_SIZ_08_SIZ_09_attention_on_distant_rows) {
  CompiledFunction function(R"(
!x = tensor<?x2x16xf32>
!wide = tensor<?x8x16xf32>
func.func @main(%x: !wide, %s: !hybrid.segments) -> (!x, !wide) {
  %q = hybrid.slice %x dim 1 from 0 size 2 : !wide -> !x
  %k = hybrid.slice %x dim 1 from 2 size 2 : !wide -> !x
  %v = hybrid.slice %x dim 1 from 4 size 2 : !wide -> !x
  %dout = hybrid.slice %x dim 1 from 6 size 2 : !wide -> !x
  %o, %lse = hybrid.attention %q, %k, %v, %s scale 0.25 windows [0, 7] sinks [0, 1]
    : (!x, !x, !x, !hybrid.segments) -> (!x, tensor<?x2xf32>)
  %dq, %dk, %dv = hybrid.attention_grad %q, %k, %v, %o, %lse, %dout, %s
    scale 0.25 windows [0, 7] sinks [0, 1]
    : (!x, !x, !x, !x, tensor<?x2xf32>, !x, !hybrid.segments) -> (!x, !x, !x)
  %grads = hybrid.concat %dq, %dk, %dv, %o dim 1 : (!x, !x, !x, !x) -> !wide
  return %o, %grads : !x, !wide
})",
                            bestLevel());
  std::vector<Tensor> arguments = {gen(0.1, {70, 8, 16}), Tensor()};
  Call call = Call::packed({65, 5});
  std::vector<Tensor> expected = function.evaluate(arguments, call);
  function.runKernel = runOnDistantRows;
  expectSameBits(function.evaluate(arguments, call), expected);
}

TEST(CompiledFaults, SIZ_05_recurrence_on_distant_rows) {
  CompiledFunction function(R"(
!x = tensor<?x1x16xf32>
!wide = tensor<?x4x16xf32>
!s = tensor<?x1x16x16xf32, #hybrid.slots>
func.func @main(%x: !wide, %g: tensor<?x1x1xf32>, %b: tensor<?x1xf32>, %s: !hybrid.segments,
                %state: !s) -> (!wide, !s) {
  %q = hybrid.slice %x dim 1 from 0 size 1 : !wide -> !x
  %k = hybrid.slice %x dim 1 from 1 size 1 : !wide -> !x
  %v = hybrid.slice %x dim 1 from 2 size 1 : !wide -> !x
  %dout = hybrid.slice %x dim 1 from 3 size 1 : !wide -> !x
  %kn = hybrid.normalize l2 %k epsilon 1.000000e-06 : !x
  %o, %final = hybrid.recurrence delta %q, %kn, %v, %s decay(%g) beta(%b) initial(%state) scale 1.0
    : (!x, !x, !x, !hybrid.segments, tensor<?x1x1xf32>, tensor<?x1xf32>, !s) -> (!x, !s)
  %d:5 = hybrid.recurrence_grad delta %q, %kn, %v, %s, %dout decay(%g) beta(%b) scale 1.0
    : (!x, !x, !x, !hybrid.segments, !x, tensor<?x1x1xf32>, tensor<?x1xf32>)
    -> (!x, !x, !x, tensor<?x1x1xf32>, tensor<?x1xf32>)
  %all = hybrid.concat %o, %d#0, %d#1, %d#2 dim 1 : (!x, !x, !x, !x) -> !wide
  return %all, %final : !wide, !s
})",
                            bestLevel());
  std::vector<Tensor> arguments = rounded(
      {gen(0.1, {70, 4, 16}),
       map(gen(0.4, {70, 1, 1}), [](double x) { return -softplus(x); }),
       map(gen(0.5, {70, 1}), sigmoid), Tensor(), gen(0.8, {2, 1, 16, 16})});
  Call call = Call::packed({65, 5});
  std::vector<Tensor> expected = function.evaluate(arguments, call);
  function.runKernel = runOnDistantRows;
  expectSameBits(function.evaluate(arguments, call), expected);
}

//===----------------------------------------------------------------------===//
// Many sequences
//===----------------------------------------------------------------------===//

/// A batch of `count` sequences is the batch run in `parts` parts. Arguments of
/// one row per token or per slot are cut; the segments argument is empty.
static void expectPartsAgree(const std::string &text,
                             const std::vector<Tensor> &arguments,
                             int64_t count, int64_t length, int64_t parts,
                             int64_t context = 0) {
  CompiledFunction function(text, bestLevel());
  auto run = [&](int64_t begin, int64_t end) {
    Call call = Call::packed(std::vector<int64_t>(end - begin, length));
    call.context = context;
    for (hybrid::oracle::Segment &segment : call.segments)
      segment.position = context ? 2 : 0;
    std::vector<Tensor> cut = arguments;
    for (Tensor &argument : cut) {
      int64_t leading = argument.size() ? argument.dim(0) : 0;
      if (leading == count)
        argument = rows(argument, begin, end);
      else if (leading == count * length)
        argument = rows(argument, begin * length, end * length);
    }
    return function.evaluate(cut, call);
  };
  std::vector<Tensor> whole = run(0, count);
  ASSERT_FALSE(whole.empty());
  for (int64_t part = 0; part < parts; ++part) {
    int64_t begin = count * part / parts, end = count * (part + 1) / parts;
    std::vector<Tensor> results = run(begin, end);
    ASSERT_EQ(results.size(), whole.size());
    for (auto [i, result] : llvm::enumerate(results)) {
      int64_t each = whole[i].dim(0) == count ? 1 : length;
      EXPECT_EQ(result.data, rows(whole[i], begin * each, end * each).data)
          << "result " << i << ", part " << part;
    }
  }
}

/// 65538 sequence-heads, one more than a grid axis of some targets holds. The
/// sequences are shorter than in the report: their number is the fault.
TEST(CompiledFaults, SIZ_01_many_sequences) {
  for (RecurrenceShape shape : {gla(6, 16), gdn(6, 16)})
    expectPartsAgree(shape.text(), recurrenceArguments(shape, 10923 * 2, 0),
                     10923, 2, 2);
}

/// One decode step of 2048 sequences of 33 heads.
TEST(CompiledFaults, SIZ_03_many_decode_steps) {
  constexpr int64_t count = 2048, heads = 33;
  for (RecurrenceShape shape : {gla(heads, 8), gdn(heads, 8)}) {
    shape.state = true;
    expectPartsAgree(shape.text(),
                     rounded(recurrenceArguments(shape, count, count)), count,
                     1, 4);
  }
  expectPartsAgree(shortConvText(heads * 8, 4, true),
                   {gen(0.3, {count, heads * 8}), gen(0.7, {heads * 8, 4}),
                    Tensor(), rounded({gen(0.8, {count, 3, heads * 8})})[0]},
                   count, 1, 4);
  for (int64_t window : {0, 2}) {
    AttentionShape shape = attention(heads, heads, 8, window);
    shape.cached = true;
    std::vector<Tensor> arguments = attentionArguments(shape, count);
    arguments.insert(arguments.begin() + 3, {gen(0.5, {count, heads, 4, 8}),
                                             gen(0.6, {count, heads, 4, 8})});
    expectPartsAgree(shape.text(), rounded(arguments), count, 1, 4,
                     /*context=*/4);
  }
}

//===----------------------------------------------------------------------===//
// Packed documents
//===----------------------------------------------------------------------===//

static const char *const kDocumentLayer = R"(
!x = tensor<?x8xf32>
!h = tensor<?x1x8xf32>
func.func @main(%x: !x, %w: tensor<8x4xf32>, %q: !h, %k: !h, %g: tensor<?x1x1xf32>,
                %b: tensor<?x1xf32>, %s: !hybrid.segments, %dout: !h) -> (!h, !x, !h, !h) {
  %c = hybrid.short_conv %x, %w, %s : (!x, tensor<8x4xf32>, !hybrid.segments) -> !x
  %v = hybrid.reshape %c : !x -> !h
  %o = hybrid.recurrence delta %q, %k, %v, %s decay(%g) beta(%b) scale 1.0
    : (!h, !h, !h, !hybrid.segments, tensor<?x1x1xf32>, tensor<?x1xf32>) -> !h
  %d:5 = hybrid.recurrence_grad delta %q, %k, %v, %s, %dout decay(%g) beta(%b) scale 1.0
    : (!h, !h, !h, !hybrid.segments, !h, tensor<?x1x1xf32>, tensor<?x1xf32>)
    -> (!h, !h, !h, tensor<?x1x1xf32>, tensor<?x1xf32>)
  %dv = hybrid.reshape %d#2 : !h -> !x
  %dx, %dw = hybrid.short_conv_grad %x, %w, %s, %dv
    : (!x, tensor<8x4xf32>, !hybrid.segments, !x) -> (!x, tensor<8x4xf32>)
  return %o, %dx, %d#0, %d#1 : !h, !x, !h, !h
})";

/// The second of two packed documents starts afresh, and a loss on it gives the
/// first no gradient.
TEST(CompiledFaults, VAR_02_packed_documents) {
  GdnFixture f;
  auto twice = [](const Tensor &tensor) { return stacked({tensor, tensor}); };
  auto wide = [](const Tensor &tensor) { return widened(tensor, {5, 1, 8}); };
  Tensor dout = stacked({Tensor({5, 1, 8}), gen(0.9, {5, 1, 8})});
  CompiledFunction function(kDocumentLayer, bestLevel());
  std::vector<Tensor> results = function.evaluate(
      {reshaped(twice(wide(f.v)), {10, 8}), gen(0.7, {8, 4}), twice(wide(f.q)),
       twice(wide(f.k)), twice(f.decay), twice(f.beta), Tensor(), dout},
      Call::packed({5, 5}));
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(rows(results[0], 5, 10).data, rows(results[0], 0, 5).data);
  for (size_t i = 1; i < results.size(); ++i) {
    for (double x : rows(results[i], 0, 5).data)
      EXPECT_EQ(x, 0) << "gradient " << i;
    EXPECT_NE(results[i].data.back() + results[i].data[5 * 8], 0);
  }
}
