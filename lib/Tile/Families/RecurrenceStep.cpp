//===- RecurrenceStep.cpp - programs for a few tokens -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The recurrence as it is defined, on the whole state: for a few tokens this
// reads and writes the state less often than a chunk of mostly empty rows.
//
//===----------------------------------------------------------------------===//

#include "RecurrenceKernel.h"
#include "RowPartEmitter.h"

using namespace mlir;
using namespace hybrid::tile;
using namespace hybrid::tile::recurrence;

namespace {
/// What a token brings: columns [K, 1], a row [1, V], numbers [1, 1].
struct Token {
  Value query, key, value, decay, beta;
};
/// Those of a row; no query where there is no output.
using ReadToken = llvm::function_ref<Token(Value row, Value to, bool output)>;
} // namespace

/// What the state, already decayed, adds to the output, and q·k: the output of
/// the next state is that and (q·k) times the update. So it waits for no sum
/// that is not made beside the prediction, where threads have to meet for sums.
struct EarlyOutput {
  Value ofState, weight;
};

static Value walkTokens(Kernel &k, Value from, Value to, Value state,
                        Value output, ReadToken read, bool isEarly) {
  const RecurrenceShape &shape = k.shape;
  Emitter &e = k.e;
  auto body = [&](Value row, ValueRange carried) -> SmallVector<Value> {
    Value state = carried[0], query;
    Token token = read(row, to, bool(output));
    Value update = token.value;
    if (shape.hasDecay())
      state = e.mul(e.exp(token.decay), state);
    if (output)
      query = e.scaled(token.query, shape.scale);
    EarlyOutput early;
    if (output && isEarly)
      early = {e.sum(e.mul(query, state), 0),
               e.sum(e.mul(query, token.key), 0)};
    if (shape.isDelta()) {
      Value predicted = e.named("predict", e.sum(e.mul(token.key, state), 0));
      update = e.sub(update, predicted);
      if (shape.hasBeta())
        update = e.mul(token.beta, update);
    }
    state = e.named("next_state", e.add(state, e.mul(token.key, update)));
    if (output) {
      Value result = isEarly ? e.add(early.ofState, e.mul(early.weight, update))
                             : e.sum(e.mul(query, state), 0);
      k.storeValueRows("store_output", e.named("outputs", result), output, row,
                       k.head, to);
    }
    return {state};
  };
  return e.loop(from, to, 1, {state}, body)[0];
}

//===----------------------------------------------------------------------===//
// Operands in memory
//===----------------------------------------------------------------------===//

static Token loadToken(Kernel &k, Value row, Value to, bool output) {
  const RecurrenceShape &shape = k.shape;
  auto column = [&](StringRef name, Value view, Value head, int64_t width) {
    return k.e.reshape(k.loadRows(name, view, row, head, width, to, 1),
                       {width, 1});
  };
  Token token;
  token.key = column("load_key", k.key, k.kvHead, shape.keyDim);
  token.value = k.loadValueRows("load_value", k.value, row, k.kvHead, to, 1);
  if (shape.hasDecay())
    token.decay = column("load_decay", k.decay, k.head, shape.decayDim());
  if (shape.hasBeta())
    token.beta = k.loadBeta(row, to, 1);
  if (output)
    token.query = column("load_query", k.query, k.head, shape.keyDim);
  return token;
}

ProgramOp hybrid::tile::buildRecurrenceStep(OpBuilder &builder, Location loc,
                                            const RecurrenceShape &shape) {
  auto walk = [](Kernel &k, Value from, Value to, Value state, Value output) {
    return walkTokens(
        k, from, to, state, output,
        [&](Value row, Value end, bool withQuery) {
          return loadToken(k, row, end, withQuery);
        },
        /*isEarly=*/false);
  };
  return buildWalk(builder, loc, "recurrence_step", shape, walk);
}

//===----------------------------------------------------------------------===//
// Operands that are made
//===----------------------------------------------------------------------===//

namespace {
/// An operand, and what a point needs of it.
struct Wanted {
  Value value;
  RowPart part;
  HeadRow row;
};

/// The operands of a step, those that it has.
struct WantedOperands {
  WantedOperands(const RecurrenceShape &s, const RecurrenceSources &from)
      : query{from.query, RowPart::Elements, {s.heads, s.keyDim, s.keyDim}},
        key{from.key, RowPart::Elements, {s.kvHeads, s.keyDim, s.keyDim}},
        value{from.value,
              RowPart::Elements,
              {s.kvHeads, s.valueDim, s.valueWidth()}},
        decay{from.decay,
              s.decayDim() == 1 ? RowPart::Heads : RowPart::Elements,
              {s.heads, s.decayDim(), s.decayDim()}},
        beta{from.beta, RowPart::Heads, {s.heads, 1, 1}} {}

  SmallVector<const Wanted *> all() const {
    SmallVector<const Wanted *> list;
    for (const Wanted *wanted : {&query, &key, &value, &decay, &beta})
      if (wanted->value)
        list.push_back(wanted);
    return list;
  }

  Wanted query, key, value, decay, beta;
};
} // namespace

std::optional<SmallVector<Value>>
RecurrenceSources::leaves(const RecurrenceShape &shape) const {
  llvm::SetVector<Value> leaves;
  for (const Wanted *wanted : WantedOperands(shape, *this).all())
    if (!made.trace(wanted->value, wanted->part, wanted->row,
                    [&](RowSources::Leaf leaf) { leaves.insert(leaf.value); }))
      return std::nullopt;
  return leaves.takeVector();
}

namespace {
/// Makes the operands of one token after another.
class TokenMaker {
public:
  TokenMaker(Kernel &k, const RecurrenceSources &sources,
             ArrayRef<Value> leaves)
      : k(k), wanted(k.shape, sources),
        query(emitter(wanted.query, sources, leaves, k.head, k.zero)),
        key(emitter(wanted.key, sources, leaves, k.kvHead, k.zero)),
        value(emitter(wanted.value, sources, leaves, k.kvHead, k.firstColumn)),
        decay(emitter(wanted.decay, sources, leaves, k.head, k.zero)),
        beta(emitter(wanted.beta, sources, leaves, k.head, k.zero)) {
    load(query, wanted.query);
    load(key, wanted.key);
    load(value, wanted.value);
    load(decay, wanted.decay);
    load(beta, wanted.beta);
  }

  Token make(Value row, Value to, bool output) {
    const RecurrenceShape &shape = k.shape;
    // All loads first: sums over a block would hold up those behind them.
    start(key, wanted.key, row, to);
    start(value, wanted.value, row, to);
    start(decay, wanted.decay, row, to);
    start(beta, wanted.beta, row, to);
    if (output)
      start(query, wanted.query, row, to);
    Token token;
    token.key = emit(key, wanted.key, {shape.keyDim, 1});
    token.value = emit(value, wanted.value, {1, shape.valueWidth()});
    if (shape.hasDecay())
      token.decay = emit(decay, wanted.decay, {shape.decayDim(), 1});
    if (shape.hasBeta())
      token.beta = emit(beta, wanted.beta, {1, 1});
    if (output)
      token.query = emit(query, wanted.query, {shape.keyDim, 1});
    return token;
  }

private:
  RowPartEmitter emitter(const Wanted &of, const RecurrenceSources &sources,
                         ArrayRef<Value> leaves, Value head, Value column) {
    auto viewOf = [this, leaves](Value leaf) {
      return k.e.view(llvm::find(leaves, leaf) - leaves.begin());
    };
    return {k.e,
            sources.made,
            of.row,
            {head, column, k.table, k.tokenSegment, viewOf}};
  }
  static void load(RowPartEmitter &emitter, const Wanted &of) {
    if (of.value)
      emitter.loadConstants(of.value, of.part);
  }
  static void start(RowPartEmitter &emitter, const Wanted &of, Value row,
                    Value to) {
    if (of.value)
      emitter.startRow(of.value, of.part, row, to);
  }
  Value emit(RowPartEmitter &emitter, const Wanted &of,
             ArrayRef<int64_t> shape) {
    return k.e.reshape(emitter.emit(of.value, of.part), shape);
  }

  Kernel &k;
  WantedOperands wanted;
  RowPartEmitter query, key, value, decay, beta;
};
} // namespace

/// As it lies in memory: strides are added where they are not those of all.
static Type viewTypeOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return ViewType::get(type.getShape(), type.getElementType());
}

ProgramOp
hybrid::tile::buildRecurrenceStepFrom(OpBuilder &builder, Location loc,
                                      const RecurrenceShape &shape,
                                      const RecurrenceSources &sources) {
  SmallVector<Value> leaves = *sources.leaves(shape);
  Arguments arguments(builder.getContext());
  for (Value leaf : leaves)
    arguments.view(viewTypeOf(leaf));
  std::optional<TokenMaker> maker;
  auto walk = [&](Kernel &k, Value from, Value to, Value state, Value output) {
    if (!maker)
      maker.emplace(k, sources, leaves);
    return walkTokens(
        k, from, to, state, output,
        [&](Value row, Value end, bool withQuery) {
          return maker->make(row, end, withQuery);
        },
        /*isEarly=*/true);
  };
  return buildWalk(builder, loc, "recurrence_step", shape, walk, &arguments);
}
