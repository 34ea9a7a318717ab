//===- PlanInstance.cpp - the launches of an entry -----------------------===//
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

/// Launches and views of all pieces of an entry: a plan of a few bytes must not
/// become memory without end.
constexpr int64_t kMaxPieceParts = 1 << 20;

Status PlanInstance::placeView(const PlanView &view, Symbols symbols,
                               const std::string &where) {
  const BufferPlace &buffer = buffers[view.buffer];
  if (buffer.kind == BufferKind::State)
    symbols[Symbols::Longest] = callShape.stateChunk;
  KernelView result = {};
  HYB_ASSIGN(int64_t offset, evaluateSize(view.offset, symbols, where));
  // One past the last element that the view reaches.
  int64_t end = offset;
  bool empty = false;
  for (size_t i = 0; i < view.sizes.size(); ++i) {
    HYB_ASSIGN(result.sizes[i], evaluateSize(view.sizes[i], symbols, where));
    HYB_ASSIGN(result.strides[i],
               evaluateSize(view.strides[i], symbols, where));
    int64_t reach;
    if (result.sizes[i] == 0)
      empty = true;
    else if (!checkedMul(result.sizes[i] - 1, result.strides[i], &reach) ||
             !checkedAdd(end, reach, &end))
      return sizeOverflow(where, symbols);
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
      return sizeOverflow(nameOf(index), symbols);
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
    HYB_ASSIGN(int64_t size, evaluateSize(kernel.grid[i], symbols, where));
    grids.push_back(size);
    // An ordered dimension without turns leaves nothing to do either.
    if (size == 0)
      place.tasks = 0;
    else if (kernel.parallel[i] && !checkedMul(place.tasks, size, &place.tasks))
      return sizeOverflow(where, symbols);
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

} // namespace hyb::rt
