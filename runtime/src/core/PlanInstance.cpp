//===- PlanInstance.cpp --------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/PlanInstance.h"

#include "core/ArenaLayout.h"
#include "core/Checked.h"

#include <cinttypes>

namespace hyb::rt {

namespace {

/// Launches and views of all pieces of an entry: a plan of a few bytes must not
/// become memory without end.
constexpr int64_t kMaxPieceParts = 1 << 20;

Status overflow(const std::string &where, const Symbols &symbols) {
  return failure(HYB_OUT_OF_RANGE,
                 "%s: a size overflows or is negative for %s; use smaller "
                 "capacities",
                 where.c_str(), symbols.text().c_str());
}

/// The value of a size, stride, offset or grid: never negative.
Result<int64_t> evaluate(const Expression &expression, const Symbols &symbols,
                         const std::string &where) {
  std::optional<int64_t> value = expression.evaluate(symbols);
  if (!value || *value < 0)
    return overflow(where, symbols);
  return *value;
}

Result<int64_t> product(const std::vector<Expression> &sizes,
                        const Symbols &symbols, const std::string &where) {
  int64_t result = 1;
  for (const Expression &size : sizes) {
    HYB_ASSIGN(int64_t value, evaluate(size, symbols, where));
    if (!checkedMul(result, value, &result))
      return overflow(where, symbols);
  }
  // The bytes must be countable too, of the widest type.
  if (result > INT64_MAX / kElementBytes)
    return overflow(where, symbols);
  return result;
}

} // namespace

/// A flat buffer, or a parameter's part of it.
Result<int64_t> PlanInstance::placeInFlat(const ModelTables &tables,
                                          const PlanBuffer &buffer,
                                          BufferPlace &place) const {
  bool some = buffer.kind == BufferKind::Param && tables.someParameters;
  if (buffer.path.empty() && some)
    return failure(HYB_UNSUPPORTED,
                   "entry '%s' takes all parameters in f32, and they are held "
                   "for inference alone; make an optimiser first",
                   source->name.c_str());
  if (buffer.path.empty())
    return tables.parameters.elements;
  const ParameterInfo *info = tables.parameters.find(buffer.path);
  if (!info)
    return failure(HYB_INVALID_FILE, "buffer %s: no parameter '%s'",
                   buffer.name.c_str(), buffer.path.c_str());
  int64_t first = info->offset;
  if (some)
    first = (*tables.someParameters)[static_cast<size_t>(
        info - tables.parameters.parameters.data())];
  place.offset = first * elementBytes(buffer.type);
  return info->elements;
}

Result<int64_t> PlanInstance::placeInState(const ModelTables &tables,
                                           const PlanBuffer &buffer,
                                           BufferPlace &place) const {
  const std::vector<StateInfo> &states = tables.states.states;
  for (place.index = 0; place.index < states.size(); ++place.index)
    if (states[place.index].path == buffer.path)
      return product(states[place.index].sizes, callShape.stateSymbols(),
                     buffer.path);
  return failure(HYB_INVALID_FILE, "buffer %s: no state '%s'",
                 buffer.name.c_str(), buffer.path.c_str());
}

/// The number of elements that the caller has for a buffer; where they start in
/// what the buffer is bound to goes into `place`.
Result<int64_t> PlanInstance::elementsOfCaller(const ModelTables &tables,
                                               const PlanBuffer &buffer,
                                               BufferPlace &place) const {
  const Symbols &symbols = callShape.symbols;
  switch (buffer.kind) {
  case BufferKind::Arena:
    return place.elements;
  case BufferKind::Input:
  case BufferKind::Output:
    // What the caller gave has been compared with the sizes.
    while (&source->buffers[source->arguments[place.index]] != &buffer)
      ++place.index;
    return place.elements;
  case BufferKind::Param:
  case BufferKind::ParamCopy:
  case BufferKind::Gradient:
  case BufferKind::Moment1:
  case BufferKind::Moment2:
    return placeInFlat(tables, buffer, place);
  case BufferKind::State:
    return placeInState(tables, buffer, place);
  case BufferKind::Ids:
  case BufferKind::Labels:
  case BufferKind::Weights:
  case BufferKind::TokenSegment:
  case BufferKind::Loss:
    return symbols[Symbols::Tokens];
  case BufferKind::SegmentTable:
    return symbols[Symbols::Segments] * 4;
  case BufferKind::Logits:
    return tables.meta.vocabulary * (source->name == "extend"
                                         ? symbols[Symbols::Segments]
                                         : symbols[Symbols::Tokens]);
  case BufferKind::Scalars:
    return int64_t(16);
  case BufferKind::RandomKey:
    while (&source->buffers[source->randomKeys[place.index]] != &buffer)
      ++place.index;
    place.offset = static_cast<int64_t>(place.index) * kRandomKeyStride;
    return int64_t(1);
  case BufferKind::Constant:
    place.offset = buffer.constantOffset;
    return static_cast<int64_t>(buffer.data.size());
  }
  return failure(HYB_INTERNAL, "buffer of an unknown kind");
}

Symbols PlanInstance::symbolsOf(const PlanBuffer &buffer) const {
  if (buffer.kind == BufferKind::State)
    return callShape.stateSymbols();
  Symbols symbols = callShape.symbols;
  // The largest piece.
  if (buffer.pieces)
    symbols[Symbols::Tokens] =
        std::min(symbols[Symbols::Tokens], source->pieces[*buffer.pieces].rows);
  return symbols;
}

Result<PlanInstance::BufferPlace>
PlanInstance::placeBuffer(const ModelTables &tables,
                          const PlanBuffer &buffer) const {
  std::string where = "buffer " + buffer.name;
  BufferPlace place = {buffer.kind, 0, 0, 0};
  HYB_ASSIGN(place.elements, product(buffer.sizes, symbolsOf(buffer), where));
  HYB_ASSIGN(int64_t elements, elementsOfCaller(tables, buffer, place));
  if (elements != place.elements)
    return failure(HYB_INVALID_FILE,
                   "%s: the plan has %" PRId64 " elements, the %s has %" PRId64
                   "; compile the spec again",
                   where.c_str(), place.elements, bufferKindName(buffer.kind),
                   elements);
  return place;
}

Status PlanInstance::placeBuffers(const ModelTables &tables) {
  for (const PlanBuffer &buffer : source->buffers) {
    HYB_ASSIGN(BufferPlace place, placeBuffer(tables, buffer));
    buffers.push_back(place);
  }
  return Status();
}

/// Lays out the arena. Buffers of algorithms that this call does not choose
/// take no room.
Status PlanInstance::layOutArena() {
  std::vector<bool> used(buffers.size());
  for (const ViewPlace &view : viewPlaces)
    used[view.buffer] = true;
  std::vector<ArenaBuffer> arena;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].kind != BufferKind::Arena)
      continue;
    ArenaBuffer request;
    if (used[i])
      request.bytes = static_cast<uint64_t>(
          buffers[i].elements * elementBytes(source->buffers[i].type));
    request.first = source->buffers[i].first;
    request.last = source->buffers[i].last;
    arena.push_back(request);
  }
  uint64_t total = 0;
  if (!layoutArena(arena, total) || total > INT64_MAX)
    return overflow("arena of " + source->name, callShape.symbols);
  arenaSize = static_cast<int64_t>(total);
  size_t next = 0;
  for (BufferPlace &place : buffers)
    if (place.kind == BufferKind::Arena)
      place.offset = static_cast<int64_t>(arena[next++].offset);
  return Status();
}

Status PlanInstance::placeView(const PlanView &view, Symbols symbols,
                               const std::string &where) {
  const BufferPlace &buffer = buffers[view.buffer];
  if (buffer.kind == BufferKind::State)
    symbols[Symbols::Longest] = callShape.stateChunk;
  KernelView result = {};
  HYB_ASSIGN(int64_t offset, evaluate(view.offset, symbols, where));
  // One past the last element that the view reaches.
  int64_t end = offset;
  bool empty = false;
  for (size_t i = 0; i < view.sizes.size(); ++i) {
    HYB_ASSIGN(result.sizes[i], evaluate(view.sizes[i], symbols, where));
    HYB_ASSIGN(result.strides[i], evaluate(view.strides[i], symbols, where));
    int64_t reach;
    if (result.sizes[i] == 0)
      empty = true;
    else if (!checkedMul(result.sizes[i] - 1, result.strides[i], &reach) ||
             !checkedAdd(end, reach, &end))
      return overflow(where, symbols);
  }
  end = empty ? offset : end + 1;
  if (end > buffer.elements)
    return failure(HYB_INVALID_FILE,
                   "%s: a view ends at element %" PRId64 " of buffer %s, which "
                   "has %" PRId64 ", for %s; compile the spec again",
                   where.c_str(), end,
                   source->buffers[view.buffer].name.c_str(), buffer.elements,
                   symbols.text().c_str());
  viewPlaces.push_back(
      {&view, view.buffer,
       offset * elementBytes(source->buffers[view.buffer].type)});
  views.push_back(result);
  return Status();
}

Status PlanInstance::checkTensorMap(const PlanTensorMap &map,
                                    const PlanAlternative &alternative,
                                    const std::string &where) const {
  size_t count = alternative.views.size();
  size_t rank = map.view < count ? alternative.views[map.view].sizes.size() : 0;
  if (map.view >= count || rank != map.box.size())
    return failure(HYB_INVALID_FILE,
                   "%s: a tensor map of %zu dimensions for view %u, which has "
                   "%zu, of %zu views; compile the spec again",
                   where.c_str(), map.box.size(), map.view, rank, count);
  return Status();
}

std::string PlanInstance::nameOf(uint32_t index) const {
  return "launch " + source->launches[index].label() + " of " + source->name;
}

Result<std::optional<uint32_t>>
PlanInstance::choose(uint32_t index, const Symbols &symbols) const {
  const PlanLaunch &launch = source->launches[index];
  for (uint32_t choice = 0; choice < launch.alternatives.size(); ++choice) {
    const std::optional<Predicate> &guard = launch.alternatives[choice].guard;
    std::optional<bool> holds = guard ? guard->evaluate(symbols) : true;
    if (!holds)
      return overflow(nameOf(index), symbols);
    if (*holds)
      return std::optional<uint32_t>(choice);
  }
  return std::optional<uint32_t>();
}

Status PlanInstance::placeLaunch(const ModelTables &tables, uint32_t index,
                                 const Symbols &symbols) {
  HYB_ASSIGN(std::optional<uint32_t> choice, choose(index, symbols));
  if (!choice)
    return Status();
  const PlanAlternative &alternative =
      source->launches[index].alternatives[*choice];
  std::string where = nameOf(index);
  const PlanKernel &kernel = tables.plan.kernels[alternative.kernel];
  LaunchPlace place = {alternative.kernel,
                       views.size(),
                       grids.size(),
                       1,
                       static_cast<uint32_t>(alternative.views.size()),
                       static_cast<uint32_t>(kernel.grid.size()),
                       nullptr};
  for (size_t i = 0; i < kernel.grid.size(); ++i) {
    HYB_ASSIGN(int64_t size, evaluate(kernel.grid[i], symbols, where));
    grids.push_back(size);
    // An ordered dimension without turns leaves nothing to do either.
    if (size == 0)
      place.tasks = 0;
    else if (kernel.parallel[i] && !checkedMul(place.tasks, size, &place.tasks))
      return overflow(where, symbols);
  }
  for (const PlanView &view : alternative.views)
    HYB_TRY(placeView(view, symbols, where));
  for (const PlanTensorMap &map : kernel.maps)
    HYB_TRY(checkTensorMap(map, alternative, where));
  if (place.tasks > 0) {
    launchPlaces.push_back(std::move(place));
    origins.push_back(index);
    scratchSize = std::max(scratchSize, kernel.scratchBytes);
  }
  return Status();
}

/// The largest power of two up to 256, where buffers begin, that divides an
/// offset in bytes, or both of two whose bits are given together.
static int64_t alignmentOf(int64_t offset) {
  constexpr int64_t kBuffers = kArenaAlignment;
  int64_t bits = offset | kBuffers;
  return bits & -bits;
}

Result<ProductShape>
PlanInstance::productShape(const PlanProduct &product,
                           const std::string &where) const {
  const KernelView *three = views.data() + views.size() - 3;
  const ViewPlace *places = viewPlaces.data() + viewPlaces.size() - 3;
  ProductShape shape;
  shape.transposeA = product.transposeA;
  shape.transposeB = product.transposeB;
  shape.accumulate = product.accumulate;
  shape.rows = three[2].sizes[0];
  shape.columns = three[2].sizes[1];
  shape.depth = three[0].sizes[product.transposeA ? 0 : 1];
  shape.type = source->buffers[places[0].buffer].type;
  shape.resultType = source->buffers[places[2].buffer].type;
  int64_t expected[3][2] = {{shape.rows, shape.depth},
                            {shape.depth, shape.columns},
                            {shape.rows, shape.columns}};
  if (shape.transposeA)
    std::swap(expected[0][0], expected[0][1]);
  if (shape.transposeB)
    std::swap(expected[1][0], expected[1][1]);
  int64_t *strides[3] = {&shape.strideA, &shape.strideB, &shape.strideC};
  int64_t *alignments[3] = {&shape.alignA, &shape.alignB, &shape.alignC};
  for (int n = 0; n < 3; ++n) {
    const int64_t *sizes = three[n].sizes;
    int64_t stride = three[n].strides[0];
    if (sizes[0] != expected[n][0] || sizes[1] != expected[n][1] ||
        (sizes[1] > 1 && three[n].strides[1] != 1) ||
        (sizes[0] > 1 && stride < sizes[1]))
      return failure(HYB_INVALID_FILE,
                     "%s: factor or result %d of a product is %" PRId64
                     " x %" PRId64 " with strides %" PRId64 " and %" PRId64
                     ", expected %" PRId64 " x %" PRId64
                     " row by row; compile the spec again",
                     where.c_str(), n, sizes[0], sizes[1], stride,
                     three[n].strides[1], expected[n][0], expected[n][1]);
    *strides[n] = stride;
    *alignments[n] =
        alignmentOf(buffers[places[n].buffer].offset | places[n].offset);
  }
  return shape;
}

Result<uint32_t> PlanInstance::placeProduct(const ModelTables &tables,
                                            uint32_t index, uint32_t last,
                                            const Symbols &symbols) {
  if (!tables.products)
    return 0u;
  // The sum of parts that this launch makes, or the launch itself.
  auto isSum = [&](uint32_t launch) {
    const auto &alternatives = source->launches[launch].alternatives;
    return !alternatives.empty() && alternatives.front().product &&
           alternatives.front().product->parts;
  };
  uint32_t end = index < last && isSum(index + 1) ? index + 1 : index;
  HYB_ASSIGN(std::optional<uint32_t> begins, choose(index, symbols));
  HYB_ASSIGN(std::optional<uint32_t> choice, choose(end, symbols));
  if (!begins || !choice)
    return 0u;
  const PlanAlternative &own = source->launches[end].alternatives[*choice];
  if (!own.product || own.product->parts != (end != index))
    return 0u;
  const PlanAlternative &factors = source->factorsOf(end, *choice);
  std::string where = nameOf(end);
  size_t firstView = views.size();
  HYB_TRY(placeView(factors.views[own.product->a], symbols, where));
  HYB_TRY(placeView(factors.views[own.product->b], symbols, where));
  HYB_TRY(placeView(own.views[own.product->c], symbols, where));
  HYB_ASSIGN(ProductShape shape, productShape(*own.product, where));
  HYB_ASSIGN(
      std::shared_ptr<const LibraryProduct> product,
      tables.products->choose(tables.plan.kernels[factors.kernel], shape));
  if (!product) {
    views.resize(firstView);
    viewPlaces.resize(firstView);
    return 0u;
  }
  launchPlaces.push_back(
      {own.kernel, firstView, grids.size(), 1, 3, 0, std::move(product)});
  origins.push_back(end);
  return end - index + 1;
}

Status PlanInstance::placeRange(const ModelTables &tables, uint32_t first,
                                uint32_t last, const Symbols &symbols) {
  for (uint32_t i = first; i <= last; ++i) {
    HYB_ASSIGN(uint32_t taken, placeProduct(tables, i, last, symbols));
    if (taken > 0)
      i += taken - 1;
    else
      HYB_TRY(placeLaunch(tables, i, symbols));
  }
  return Status();
}

/// The same launches for piece after piece.
Status PlanInstance::placePieces(const ModelTables &tables,
                                 const PlanPieces &pieces) {
  const int64_t tokens = callShape.symbols[Symbols::Tokens];
  int64_t count = tokens / pieces.rows + (tokens % pieces.rows > 0);
  int64_t parts = 0;
  for (uint32_t i = pieces.first; i <= pieces.last; ++i) {
    // Of every piece the views of one alternative are kept, and the guards of
    // all of them are looked at.
    const auto &alternatives = source->launches[i].alternatives;
    size_t views = 0;
    for (const PlanAlternative &choice : alternatives)
      views = std::max(views, choice.views.size());
    parts += static_cast<int64_t>(alternatives.size() + views);
  }
  if (!checkedMul(count, parts, &parts) ||
      !checkedAdd(pieceParts, parts, &pieceParts) ||
      pieceParts > kMaxPieceParts)
    return failure(HYB_OUT_OF_RANGE,
                   "launches %u to %u of %s for every %" PRId64
                   " rows have more than %" PRId64
                   " views and alternatives for %s; use smaller capacities",
                   pieces.first, pieces.last, source->name.c_str(), pieces.rows,
                   kMaxPieceParts, callShape.symbols.text().c_str());
  Symbols symbols = callShape.symbols;
  for (int64_t piece = 0; piece < count; ++piece) {
    int64_t row = piece * pieces.rows;
    symbols[Symbols::Row] = row;
    symbols[Symbols::Tokens] = std::min(pieces.rows, tokens - row);
    HYB_TRY(placeRange(tables, pieces.first, pieces.last, symbols));
  }
  return Status();
}

Status PlanInstance::placeLaunches(const ModelTables &tables) {
  auto count = static_cast<uint32_t>(source->launches.size());
  uint32_t next = 0;
  for (const PlanPieces &pieces : source->pieces) {
    if (next < pieces.first)
      HYB_TRY(placeRange(tables, next, pieces.first - 1, callShape.symbols));
    HYB_TRY(placePieces(tables, pieces));
    next = pieces.last + 1;
  }
  return next < count ? placeRange(tables, next, count - 1, callShape.symbols)
                      : Status();
}

Result<PlanInstance> PlanInstance::create(const ModelTables &tables,
                                          const PlanEntry &entry,
                                          const CallShape &shape) {
  PlanInstance instance;
  instance.plan = &tables.plan;
  instance.source = &entry;
  instance.callShape = shape;
  HYB_TRY(instance.placeBuffers(tables));
  HYB_TRY(instance.placeLaunches(tables));
  HYB_TRY(instance.layOutArena());
  // The arrays have stopped growing: their addresses may be taken. They survive
  // a move of the instance.
  for (const LaunchPlace &place : instance.launchPlaces)
    instance.list.push_back(
        {place.product ? nullptr : tables.kernels[place.kernel],
         instance.views.data() + place.firstView,
         instance.grids.data() + place.firstGrid, place.tasks, place.viewCount,
         place.gridRank, place.product.get()});
  return instance;
}

void *PlanInstance::baseOf(const BufferPlace &place,
                           const Bindings &bindings) const {
  switch (place.kind) {
  case BufferKind::Arena:
    return bindings.arena;
  case BufferKind::Param:
    return bindings.parameters;
  case BufferKind::ParamCopy:
    return bindings.parameterCopies;
  case BufferKind::Gradient:
    return bindings.gradients;
  case BufferKind::Moment1:
    return bindings.moment1;
  case BufferKind::Moment2:
    return bindings.moment2;
  case BufferKind::State:
    return bindings.states.empty() ? nullptr : bindings.states[place.index];
  case BufferKind::Ids:
    return bindings.ids;
  case BufferKind::Labels:
    return bindings.labels;
  case BufferKind::Weights:
    return bindings.weights;
  case BufferKind::SegmentTable:
    return bindings.segmentTable;
  case BufferKind::TokenSegment:
    return bindings.tokenSegment;
  case BufferKind::Loss:
    return bindings.loss;
  case BufferKind::Logits:
    return bindings.logits;
  case BufferKind::Scalars:
    return bindings.scalars;
  case BufferKind::RandomKey:
    return bindings.randomKeys;
  case BufferKind::Input:
  case BufferKind::Output:
    return place.index < bindings.arguments.size()
               ? bindings.arguments[place.index]
               : nullptr;
  case BufferKind::Constant:
    return bindings.constants;
  }
  return nullptr;
}

void PlanInstance::bind(Bindings bindings) {
  if (bindCount > 0 && bindings == bound)
    return;
  bound = std::move(bindings);
  ++bindCount;
  for (size_t i = 0; i < views.size(); ++i) {
    const BufferPlace &place = buffers[viewPlaces[i].buffer];
    char *base = static_cast<char *>(baseOf(place, bound));
    // A buffer that the caller did not give stays null: adding to it would
    // make an address that looks like one.
    views[i].base = base ? base + place.offset + viewPlaces[i].offset : nullptr;
  }
}

} // namespace hyb::rt
