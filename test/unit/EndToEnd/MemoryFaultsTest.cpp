//===- MemoryFaultsTest.cpp - faults of memory and of sizes ---------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Memory that must not be touched, offsets past 32 bits, more sequences than an
// axis of a grid holds.
//
//===----------------------------------------------------------------------===//

#include "FaultArguments.h"
#include "PlacedMemory.h"

using namespace hybrid;
using namespace hybrid::cases;
using namespace hybrid::test;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

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

/// The rows of token `t` of each of `count` sequences of `length` tokens.
static Tensor rowsAt(const Tensor &tensor, int64_t t, int64_t count,
                     int64_t length) {
  std::vector<Tensor> parts;
  for (int64_t n = 0; n < count; ++n)
    parts.push_back(rows(tensor, n * length + t, n * length + t + 1));
  return stacked(parts);
}

/// One token a call, each tensor before a closed page; equal to the chunked
/// path, whose gradients stay inside too.
TEST(CompiledFaults, LIN_22_recurrent_path) {
  constexpr int64_t count = 2, length = 1024, heads = 16, width = 64;
  RecurrenceShape shape = gdn(heads, width);
  shape.state = true;
  CompiledFunction function(shape.text(), bestLevel()),
      gradient(shape.gradientText(), bestLevel());
  std::vector<Tensor> arguments =
      rounded(recurrenceArguments(shape, count * length, count));
  function.runKernel = gradient.runKernel = runBeforeGuardPages;
  Call whole = Call::packed({length, length}), step = Call::packed({1, 1});
  step.slots = whole.slots = count;
  std::vector<Tensor> chunked = function.evaluate(arguments, whole);
  ASSERT_EQ(chunked.size(), 2u);

  std::vector<Tensor> outputs(length);
  std::vector<Tensor> token = arguments;
  for (int64_t t = 0; t < length; ++t) {
    for (size_t i = 0; i + 1 < arguments.size(); ++i)
      if (arguments[i].size())
        token[i] = rowsAt(arguments[i], t, count, length);
    std::vector<Tensor> results = function.evaluate(token, step);
    ASSERT_EQ(results.size(), 2u);
    outputs[t] = results[0];
    token.back() = results[1];
    for (hybrid::oracle::Segment &segment : step.segments)
      ++segment.position;
  }
  std::vector<Tensor> bySequence;
  for (int64_t n = 0; n < count; ++n)
    for (const Tensor &output : outputs)
      bySequence.push_back(rows(output, n, n + 1));
  expectNear({stacked(bySequence), token.back()}, chunked, 1e-5);

  arguments.push_back(gen(0.9, {count * length, heads, width}));
  for (const Tensor &result : gradient.evaluate(arguments, whole))
    for (double x : result.data)
      ASSERT_TRUE(std::isfinite(x));
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

/// 65538 sequence-heads, more than a grid axis of some targets holds.
TEST(CompiledFaults, SIZ_01_many_sequences) {
  RecurrenceShape shape = gdn(6, 16);
  expectPartsAgree(shape.text(), recurrenceArguments(shape, 10923 * 32, 0),
                   10923, 32, 2);
}

/// 81920 sequence-heads of another family.
TEST(CompiledFaults, SIZ_01_many_short_sequences) {
  RecurrenceShape shape = gla(2, 16);
  expectPartsAgree(shape.text(), recurrenceArguments(shape, 40960 * 20, 0),
                   40960, 20, 2);
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
