//===- SoftmaxStep.cpp - a cached attention of few rows, in one launch ----===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two kinds of keys: those of earlier calls lie in the cache and are the same
// all through the call, so that they may be read before the launch in front has
// ended; the new ones come from where they were made and are put into the cache
// by one point, which no other point reads there. Each kind has views of its
// own, so that a target sees that what it reads is constant.
//
// What lies behind the first row of the call that is read decides how long a
// step takes. So what positions give is made in front of it, earlier keys are
// in ranges of equal length, and the new ones take a place each of the tile
// that the last range begins with.
//
//===----------------------------------------------------------------------===//

#include "RowwiseEmitter.h"
#include "SlotSoftmax.h"
#include "SoftmaxCache.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::tile;

namespace {
/// One point: a query row of the heads that share a key head, and a range of
/// the earlier keys; the last range begins with the new ones.
class StepAttention {
public:
  StepAttention(OpBuilder &builder, Location loc, const SoftmaxStep &step,
                RowwiseBody *query, RowwiseBody *key);
  ProgramOp emit();

private:
  using Values = KernelBuilder::Values;

  SmallVector<Type> viewTypes(MLIRContext *context) const;
  KernelBuilder makeBuilder(OpBuilder &builder, Location loc) const;
  bool isSplit() const { return s.splits > 1; }

  void findKeys();
  /// A tile of earlier keys, those below `end`, and its values.
  struct Tile {
    KeyTile at;
    Value end, keys, values;
  };
  Tile loadTile(Value n, Value end);
  SmallVector<Value> visibleFrom(Value first, Value limit, int64_t perPlace,
                                 bool areNew);
  /// New keys of a place.
  int64_t newPerPlace() const { return llvm::divideCeil(step.newRows, places); }
  int64_t newTile() const { return places * newPerPlace(); }
  /// Rows of q or k, of this point's heads: loaded, and then made of that.
  struct Rows {
    RowwiseBody *body;
    std::optional<RowwiseEmitter> emitter;
    Value loaded;
  };
  Rows prepare(RowwiseBody *body, Value row, int64_t rows, Value firstHead,
               int64_t count);
  void load(Rows &rows, unsigned view, Value row, int64_t count,
            Value firstHead, int64_t numHeads);
  /// [rows, heads, D].
  static Value make(Rows &rows);
  Values attendTile(const Tile &tile, ValueRange carried);
  Values attendNew(Rows &newKeys, Value values);
  void appendNew(Value keys, Value values, Value stop);
  void store(const OnlineSoftmax &result, int64_t h);

  const SoftmaxStep &step;
  const SoftmaxShape &s;
  RowwiseBody *queryBody, *keyBody;
  int64_t heads;  // query heads per point
  int64_t places; // of a tile of keys
  /// Views: q and k are the first of what makes them.
  unsigned q = 0, newK = 0, newV = 0, kCache = 0, vCache = 0, kUpdated = 0,
           vUpdated = 0, table = 0, o = 0;
  KernelBuilder k;
  Segment segment;
  Value row, head, kvHead, query; // query: position of the row
  SmallVector<Value> queries;     // [1, D] per head
  Visibility sees;
  KeyRange range;
  /// Earlier keys of this point end there; its tiles.
  Value end, lower, upper;
};
} // namespace

StepAttention::StepAttention(OpBuilder &builder, Location loc,
                             const SoftmaxStep &step, RowwiseBody *query,
                             RowwiseBody *key)
    : step(step), s(step.shape), queryBody(query), keyBody(key),
      heads(s.headsPerPoint()), places(s.keyTile / step.keysPerPlace),
      k(makeBuilder(builder, loc)) {
  assert(s.keyTile % step.keysPerPlace == 0 && "each place has as many keys");
  o = k.numViews() - (isSplit() ? 2 : 1);
  table = o - 2;
  vUpdated = table - 1;
  kUpdated = table - 2;
  vCache = table - 3;
  kCache = table - 4;
  newV = table - 5;
  SmallVector<Type> before;
  if (query)
    query->appendOperandViews(before, /*withSegments=*/false);
  newK = query ? before.size() : 1;
  if (key)
    key->firstView = newK;
}

SmallVector<Type> StepAttention::viewTypes(MLIRContext *c) const {
  constexpr int64_t t = ShapedType::kDynamic;
  SmallVector<Type> types;
  auto add = [&](RowwiseBody *body, int64_t count) {
    if (body)
      body->appendOperandViews(types, /*withSegments=*/false);
    else
      types.push_back(KernelBuilder::viewType(c, {t, count, s.dim}, s.element));
  };
  add(queryBody, s.heads);
  add(keyBody, s.kvHeads);
  types.push_back(
      KernelBuilder::viewType(c, {t, s.kvHeads, s.valueDim}, s.element));
  llvm::append_range(types, cacheTypes(c, s));
  llvm::append_range(types, cacheTypes(c, s));
  llvm::append_range(types, KernelBuilder::segmentViewTypes(c));
  llvm::append_range(types, outputTypes(c, s, isSplit()));
  return types;
}

KernelBuilder StepAttention::makeBuilder(OpBuilder &builder,
                                         Location loc) const {
  MLIRContext *context = builder.getContext();
  Symbols sym(context);
  AffineExpr grid[] = {
      sym.segments, getAffineConstantExpr(s.heads / s.headsPerPoint(), context),
      sym.longest, getAffineConstantExpr(s.splits, context)};
  SmallVector<Order> order(4, Order::parallel);
  return KernelBuilder(builder, loc, "softmax_step", grid, order,
                       viewTypes(context));
}

/// A row that the segment does not have sees no keys and is not stored; there
/// is no branch around it, since what is inside of one waits for the launch in
/// front.
void StepAttention::findKeys() {
  end = k.select(k.lt(row, segment.end), segment.first, k.idx(0));
  sees = Visibility::of(k, s, head);
  range = visibleKeys(k, sees, query, end, s.keyTile);
  lower = k.idx(0);
  upper = range.tiles;
  if (!isSplit())
    return;
  // The last range, which has the new keys too, is none of the longer ones.
  Value ranges = k.idx(s.splits);
  auto share = [&](Value all, Value n) {
    return k.ceilDiv(k.mul(n, all), ranges);
  };
  Value next = k.add(k.id(3), k.idx(1));
  if (sees.sinks) {
    lower = share(range.tiles, k.id(3));
    upper = share(range.tiles, next);
    return;
  }
  Value keys = k.max(k.idx(0), k.sub(end, range.start));
  Value first = share(keys, k.id(3)), last = share(keys, next);
  end = k.add(range.start, last);
  range.start = k.add(range.start, first);
  upper = k.ceilDiv(k.sub(last, first), k.idx(s.keyTile));
}

StepAttention::Tile StepAttention::loadTile(Value n, Value end) {
  KeyTile at = keyTileAt(k, range, n, s.keyTile);
  auto load = [&](unsigned view, int64_t width) {
    return loadFromCache(k, s, k.view(view), segment.slot, kvHead, at, end,
                         width);
  };
  Value keys = load(kCache, s.dim);
  return {at, end, keys, load(vCache, s.valueDim)};
}

/// What their positions give.
StepAttention::Rows StepAttention::prepare(RowwiseBody *body, Value first,
                                           int64_t rows, Value firstHead,
                                           int64_t count) {
  if (!body)
    return {};
  body->block.rows = rows;
  body->block.heads = count;
  Rows made{
      body, RowwiseEmitter(k, body->block, first, segment.end, firstHead), {}};
  made.emitter->setSegment(segment);
  body->prepare(*made.emitter);
  return made;
}

void StepAttention::load(Rows &rows, unsigned view, Value first, int64_t count,
                         Value firstHead, int64_t numHeads) {
  if (rows.body)
    rows.body->load(*rows.emitter, first, segment.end);
  else
    rows.loaded = k.load(k.view(view), {first, firstHead, k.idx(0)}, {0, 1, 2},
                         {count, numHeads, s.dim}, {segment.end});
}

Value StepAttention::make(Rows &rows) {
  if (!rows.body)
    return rows.loaded;
  rows.body->emit(*rows.emitter);
  return rows.emitter->tileOf(rows.body->results.front());
}

/// Which keys from `first` to `limit` are visible, for each key of a place; of
/// earlier ones, which no query comes before, without windows all.
SmallVector<Value> StepAttention::visibleFrom(Value first, Value limit,
                                              int64_t perPlace, bool areNew) {
  int64_t column[] = {places, 1};
  Value at = k.splat(k.toI32(query), column);
  SmallVector<Value> visible;
  for (int64_t n = 0; n < perPlace; ++n) {
    Value from = k.toI32(k.add(first, k.idx(n * places)));
    Value key = k.add(k.splat(from, column), k.iota(0, column));
    visible.push_back(areNew || sees.window
                          ? isVisible(k, sees, key, at, limit)
                          : k.lt(key, k.splat(k.toI32(limit), column)));
  }
  return visible;
}

/// Takes in a tile of earlier keys.
StepAttention::Values StepAttention::attendTile(const Tile &tile,
                                                ValueRange carried) {
  Value limit = tile.at.limit ? k.min(tile.at.limit, tile.end) : tile.end;
  SmallVector<Value> visible =
      visibleFrom(tile.at.first, limit, step.keysPerPlace, /*areNew=*/false);
  Values next;
  for (int64_t h = 0; h < heads; ++h)
    llvm::append_range(next, SlotSoftmax::from(carried.slice(3 * h, 3))
                                 .update(k, tile.keys, queries[h], s.scale,
                                         visible, tile.values)
                                 .carried());
  return next;
}

/// The new rows go into the cache once: by the first row's point, of heads that
/// share a key head the first one's.
void StepAttention::appendNew(Value keys, Value values, Value stop) {
  Value isMine = k.eq(k.id(2), k.idx(0));
  if (heads < s.group())
    isMine = k.both(isMine, k.eq(k.rem(head, k.idx(s.group())), k.idx(0)));
  k.when(isMine, [&] {
    storeInCache(k, s, keys, k.view(kUpdated), segment.slot, kvHead,
                 segment.first, stop);
    storeInCache(k, s, values, k.view(vUpdated), segment.slot, kvHead,
                 segment.first, stop);
  });
}

/// Each head's places with the new keys.
StepAttention::Values StepAttention::attendNew(Rows &newKeys, Value values) {
  Value keys = k.reshape(make(newKeys), {newTile(), s.dim});
  Value stop = k.add(segment.first, k.sub(segment.end, segment.begin));
  appendNew(keys, values, stop);
  SmallVector<Value> visible =
      visibleFrom(segment.first, stop, newPerPlace(), /*areNew=*/true);
  Values results;
  for (int64_t h = 0; h < heads; ++h)
    llvm::append_range(
        results, SlotSoftmax::start(k, places, s.valueDim)
                     .update(k, keys, queries[h], s.scale, visible, values)
                     .carried());
  return results;
}

void StepAttention::store(const OnlineSoftmax &result, int64_t h) {
  Value at = k.add(head, k.idx(h)), zero = k.idx(0);
  Value output = result.output(k, "output_" + std::to_string(h));
  if (!isSplit())
    return k.store(output, k.view(o), {row, at, zero}, {0, 2}, {segment.end});
  k.store(output, k.view(o), {row, at, k.id(3), zero}, {0, 3}, {segment.end});
  k.store(result.logSumExp(k), k.view(o + 1), {row, at, k.id(3)}, {0, 2},
          {segment.end});
}

ProgramOp StepAttention::emit() {
  segment = k.segment(k.view(table), k.id(0));
  head = heads == 1 ? k.id(1) : k.mul(k.id(1), k.idx(heads));
  kvHead = heads == s.group() ? k.id(1) : k.div(head, k.idx(s.group()));
  row = k.add(segment.begin, k.id(2));
  query = k.add(segment.first, k.id(2));
  findKeys();

  // A tile of a ring is not streamed: the first one is asked for before the
  // query is there.
  std::optional<Tile> first;
  if (s.anyWindow())
    first = loadTile(lower, k.select(k.lt(lower, upper), end, k.idx(0)));

  // A row that is not there is made of another one.
  Value last = k.max(k.idx(0), k.sub(segment.end, k.idx(1)));
  Value queryRow = k.min(row, last);
  Rows theQuery = prepare(queryBody, queryRow, 1, head, heads);
  Rows newKeys = prepare(keyBody, segment.begin, newTile(), kvHead, 1);
  // All rows are asked for before one is used.
  load(theQuery, q, queryRow, 1, head, heads);
  load(newKeys, newK, segment.begin, newTile(), kvHead, 1);
  Value newValues = k.load(k.view(newV), {segment.begin, kvHead, k.idx(0)},
                           {0, 2}, {newTile(), s.valueDim}, {segment.end});
  Value made = k.reshape(make(theQuery), {heads, s.dim});
  Values slots;
  for (int64_t h = 0; h < heads; ++h) {
    queries.push_back(k.slice(made, 0, h, 1));
    llvm::append_range(slots,
                       SlotSoftmax::start(k, places, s.valueDim).carried());
  }
  if (isSplit())
    slots = k.choose(
        k.eq(k.id(3), k.idx(s.splits - 1)),
        [&] { return attendNew(newKeys, newValues); }, [&] { return slots; });
  else
    slots = attendNew(newKeys, newValues);

  if (first)
    slots = attendTile(*first, slots);
  slots = k.loop(first ? k.add(lower, k.idx(1)) : lower, upper, 1, slots,
                 [&](Value n, ValueRange carried) {
                   return attendTile(loadTile(n, end), carried);
                 });
  for (int64_t h = 0; h < heads; ++h)
    store(SlotSoftmax::from(ValueRange(slots).slice(3 * h, 3)).joined(k), h);
  return k.finish();
}

ProgramOp hybrid::tile::buildSoftmaxStep(OpBuilder &builder, Location loc,
                                         const SoftmaxStep &step) {
  std::optional<RowwiseBody> query, key;
  if (step.query)
    query.emplace(step.query);
  if (step.key)
    key.emplace(step.key);
  return StepAttention(builder, loc, step, query ? &*query : nullptr,
                       key ? &*key : nullptr)
      .emit();
}

bool hybrid::tile::canMakeHeads(Operation *op) {
  RowwiseBody body(op);
  return body.results.size() == 1 && body.keepsHeads();
}
