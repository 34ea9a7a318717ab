//===- PlanBuffers.cpp - where the buffers of an entry are ---------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every buffer of the plan is a part of something that the caller has, whose
// elements are counted on both sides, or lies in the arena.
//
//===----------------------------------------------------------------------===//

#include "core/ArenaLayout.h"
#include "core/Checked.h"
#include "core/PlanInstance.h"

#include <cinttypes>

namespace hyb::rt {

static Result<int64_t> productOf(const std::vector<Expression> &sizes,
                                 const Symbols &symbols,
                                 const std::string &where) {
  int64_t result = 1;
  for (const Expression &size : sizes) {
    HYB_ASSIGN(int64_t value, evaluateSize(size, symbols, where));
    if (!checkedMul(result, value, &result))
      return sizeOverflow(where, symbols);
  }
  // The bytes must be countable too, of the widest type.
  if (result > INT64_MAX / kElementBytes)
    return sizeOverflow(where, symbols);
  return result;
}

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
      return productOf(states[place.index].sizes, callShape.stateSymbols(),
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
  case BufferKind::TokensById:
    return symbols[Symbols::Tokens] * kTokensByIdColumns;
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
  HYB_ASSIGN(place.elements, productOf(buffer.sizes, symbolsOf(buffer), where));
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
    return sizeOverflow("arena of " + source->name, callShape.symbols);
  arenaSize = static_cast<int64_t>(total);
  size_t next = 0;
  for (BufferPlace &place : buffers)
    if (place.kind == BufferKind::Arena)
      place.offset = static_cast<int64_t>(arena[next++].offset);
  return Status();
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
  case BufferKind::TokensById:
    return bindings.tokensById;
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
