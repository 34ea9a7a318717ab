//===- State.cpp ---------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/State.h"

#include "core/ArenaLayout.h"
#include "core/Checked.h"
#include "core/Context.h"

#include <cinttypes>

namespace hyb::rt {

namespace {
/// Of a slot, when neither the caller nor the spec names a length.
constexpr int64_t kDefaultContext = 4096;
constexpr int64_t kAlignment = kArenaAlignment;

/// A processor is filled by few rows. A GPU wants thousands of them in a call;
/// of many sequences that arrive together each brings some.
int64_t defaultChunk(const Model &model, int64_t slots) {
  constexpr int64_t kLeast = 512, kMost = 4096, kRows = 8192;
  if (model.device().isHost())
    return kLeast;
  return std::clamp(kRows / std::max<int64_t>(slots, 1), kLeast, kMost);
}
} // namespace

Result<CallShape> State::shapeFor(const Model &model,
                                  const hyb_state_options &options) {
  int64_t trained = model.meta().trainedLength;
  int64_t context = options.context != 0 ? options.context
                    : trained > 0        ? trained
                                         : kDefaultContext;
  int64_t chunk = options.chunk > 0
                      ? options.chunk
                      : std::min(defaultChunk(model, options.slots), context);
  if (options.slots < 1 || options.slots > INT32_MAX || context < 1 ||
      context > INT32_MAX)
    return failure(HYB_INVALID_ARGUMENT,
                   "state of %" PRId64 " slots and context %" PRId64
                   "; both must be in 1 to 2147483647",
                   options.slots, context);
  if (options.chunk < 0 || chunk > context || options.rollback_depth < 0 ||
      options.rollback_depth > context)
    return failure(HYB_INVALID_ARGUMENT,
                   "chunk %" PRId64 " and rollback depth %" PRId64
                   " must be between 0 and the context of %" PRId64,
                   options.chunk, options.rollback_depth, context);
  CallShape shape;
  shape.symbols[Symbols::Slots] = options.slots;
  shape.symbols[Symbols::Context] = context;
  shape.symbols[Symbols::Depth] = options.rollback_depth;
  shape.stateChunk = chunk;
  return shape;
}

Status State::layOut() {
  Symbols symbols = shape.stateSymbols();
  for (const StateInfo &info : model->stateTable().states) {
    int64_t elements = 1;
    std::vector<uint64_t> sizes;
    for (const Expression &expression : info.sizes) {
      std::optional<int64_t> size = expression.evaluate(symbols);
      if (!size || *size < 0 || !checkedMul(elements, *size, &elements))
        return failure(HYB_OUT_OF_RANGE,
                       "state %s: a size overflows or is negative for %s; use "
                       "smaller capacities",
                       info.path.c_str(), symbols.text().c_str());
      sizes.push_back(static_cast<uint64_t>(*size));
    }
    int64_t slotCount = symbols[Symbols::Slots];
    int64_t bytes, padded;
    if (sizes[0] != static_cast<uint64_t>(slotCount))
      return failure(HYB_INVALID_FILE,
                     "state %s: first size is %" PRIu64
                     ", expected the %" PRId64 " slots; compile the spec again",
                     info.path.c_str(), sizes[0], slotCount);
    if (!checkedMul(elements, elementBytes(info.type), &bytes) ||
        !checkedAdd(bytes, kAlignment - 1, &padded) ||
        !checkedAdd(totalBytes, padded / kAlignment * kAlignment, &padded))
      return failure(HYB_OUT_OF_RANGE, "state %s is too large",
                     info.path.c_str());
    pieces.push_back({totalBytes,
                      bytes / slotCount,
                      info.rowPerToken(),
                      {sizes.begin() + 1, sizes.end()}});
    totalBytes = padded;
  }
  return Status();
}

Result<int64_t> State::measure(const Model &model,
                               const hyb_state_options &options) {
  State state;
  state.model = const_cast<Model *>(&model);
  HYB_ASSIGN(state.shape, shapeFor(model, options));
  HYB_TRY(state.layOut());
  return state.totalBytes;
}

Result<std::unique_ptr<State>> State::create(Model &model,
                                             const hyb_state_options &options) {
  auto state = std::make_unique<State>();
  state->model = &model;
  HYB_ASSIGN(state->shape, shapeFor(model, options));
  HYB_TRY(state->layOut());
  HYB_ASSIGN(state->memory, model.device().allocate(state->totalBytes));
  for (const Piece &piece : state->pieces)
    state->bases.push_back(state->place(piece, 0));
  state->slots.resize(static_cast<size_t>(options.slots));
  return state;
}

std::vector<int64_t> State::bufferShape(size_t index) const {
  std::vector<int64_t> result = {slotCount()};
  result.insert(result.end(), pieces[index].slotShape.begin(),
                pieces[index].slotShape.end());
  return result;
}

void State::describe(CallShape &call) const {
  call.stateChunk = shape.stateChunk;
  for (auto index : {Symbols::Slots, Symbols::Context, Symbols::Depth})
    call.symbols[index] = shape.symbols[index];
}

Status State::checkSlot(int64_t slot) const {
  if (slot >= 0 && slot < slotCount())
    return Status();
  return failure(HYB_OUT_OF_RANGE,
                 "slot %" PRId64 " does not exist, the state has %" PRId64
                 "; create it with more slots",
                 slot, slotCount());
}

Status State::checkOwner(const Model &user) const {
  if (model == &user)
    return Status();
  return failure(HYB_MISMATCH,
                 "the state is of model %s, the context of %s%s; create both "
                 "from one model",
                 model->meta().name.c_str(),
                 model->meta().name == user.meta().name ? "another model " : "",
                 user.meta().name.c_str());
}

Status State::checkExtend(const hyb_batch &batch) const {
  std::vector<bool> used(slots.size());
  for (int64_t i = 0; i < batch.segment_count; ++i) {
    const hyb_segment &segment = batch.segments[i];
    HYB_TRY(checkSlot(segment.slot));
    if (used[static_cast<size_t>(segment.slot)])
      return failure(HYB_INVALID_ARGUMENT,
                     "segment %" PRId64 " uses slot %" PRId64
                     " a second time; give every segment a slot of its own",
                     i, segment.slot);
    used[static_cast<size_t>(segment.slot)] = true;
    int64_t context = shape.symbols[Symbols::Context];
    if (segment.length > context - length(segment.slot))
      return failure(HYB_OUT_OF_RANGE,
                     "slot %" PRId64 " holds %" PRId64 " tokens and %" PRId64
                     " more exceed its context of %" PRId64
                     "; create the state with a longer context",
                     segment.slot, length(segment.slot), segment.length,
                     context);
  }
  return Status();
}

Status State::copyOut(int64_t slot, bool all, DeviceMemory &content) const {
  int64_t bytes = 0;
  for (const Piece &piece : pieces)
    if (all || !piece.rowPerToken)
      bytes += piece.slotBytes;
  // A share that somebody else holds is not overwritten.
  if (content.bytes() != bytes || content.share().use_count() > 2) {
    HYB_ASSIGN(content, model->device().allocate(bytes, Contents::Anything));
  }
  char *next = static_cast<char *>(content.data());
  for (const Piece &piece : pieces)
    if (all || !piece.rowPerToken) {
      HYB_TRY(model->device().copy(next, place(piece, slot), piece.slotBytes));
      next += piece.slotBytes;
    }
  return Status();
}

Status State::copyIn(int64_t slot, bool all, const DeviceMemory &content) {
  const char *next = static_cast<const char *>(content.data());
  for (const Piece &piece : pieces)
    if (all || !piece.rowPerToken) {
      HYB_TRY(model->device().copy(place(piece, slot), next, piece.slotBytes));
      next += piece.slotBytes;
    }
  return Status();
}

Status State::remember(const std::vector<SegmentRows> &segments) {
  if (shape.symbols[Symbols::Depth] == 0)
    return Status();
  for (const SegmentRows &segment : segments) {
    Slot &slot = at(segment.slot);
    // The copy that the last call made unneeded gives its memory to this one.
    Checkpoint checkpoint;
    if (slot.checkpoints.size() > 1 &&
        slot.checkpoints[1].position <=
            slot.length - shape.symbols[Symbols::Depth]) {
      checkpoint = std::move(slot.checkpoints.front());
      slot.checkpoints.erase(slot.checkpoints.begin());
      slot.history.erase(
          slot.history.begin(),
          slot.history.begin() +
              (slot.checkpoints.front().position - checkpoint.position));
    }
    checkpoint.position = slot.length;
    size_t more = static_cast<size_t>(segment.length);
    slot.history.reserve(slot.history.size() + more);
    HYB_TRY(copyOut(segment.slot, /*all=*/false, checkpoint.content));
    slot.checkpoints.push_back(std::move(checkpoint));
  }
  return Status();
}

void State::advance(const std::vector<SegmentRows> &segments,
                    const int32_t *ids) {
  for (const SegmentRows &segment : segments) {
    Slot &slot = at(segment.slot);
    slot.length += segment.length;
    slot.reach = std::max(slot.reach, slot.length);
    if (shape.symbols[Symbols::Depth] > 0)
      slot.history.insert(slot.history.end(), ids, ids + segment.length);
    ids += segment.length;
  }
}

Result<std::vector<DeviceMemory>>
State::keep(const std::vector<SegmentRows> &segments) const {
  std::vector<DeviceMemory> kept(segments.size());
  for (size_t i = 0; i < segments.size(); ++i)
    HYB_TRY(copyOut(segments[i].slot, /*all=*/false, kept[i]));
  return kept;
}

Status State::putBack(const std::vector<SegmentRows> &segments,
                      const std::vector<DeviceMemory> &kept) {
  for (size_t i = 0; i < segments.size(); ++i) {
    HYB_TRY(copyIn(segments[i].slot, /*all=*/false, kept[i]));
    Slot &slot = at(segments[i].slot);
    slot.reach = std::max(slot.reach, slot.length + segments[i].length);
    // `remember` made it for tokens that did not come.
    if (!slot.checkpoints.empty() &&
        slot.checkpoints.back().position == slot.length)
      slot.checkpoints.pop_back();
  }
  return Status();
}

Status State::reset(int64_t slot) {
  HYB_TRY(checkSlot(slot));
  // Rows of a cache are never read before they are written.
  for (const Piece &piece : pieces)
    if (!piece.rowPerToken)
      HYB_TRY(model->device().clear(place(piece, slot), piece.slotBytes));
  at(slot) = Slot();
  return Status();
}

Status State::fork(int64_t from, int64_t to) {
  HYB_TRY(checkSlot(from));
  HYB_TRY(checkSlot(to));
  if (from == to)
    return Status();
  Slot copy = at(from); // before the memory changes, because it may fail
  for (const Piece &piece : pieces)
    HYB_TRY(model->device().copy(place(piece, to), place(piece, from),
                                 piece.slotBytes));
  at(to) = std::move(copy);
  return Status();
}

Status State::rollback(Context &context, int64_t slotIndex, int64_t tokens) {
  HYB_TRY(checkSlot(slotIndex));
  HYB_TRY(checkOwner(context.model()));
  Slot &slot = at(slotIndex);
  int64_t depth = shape.symbols[Symbols::Depth];
  if (tokens < 0 || tokens > depth || tokens > slot.length)
    return failure(HYB_OUT_OF_RANGE,
                   "cannot take back %" PRId64 " of %" PRId64
                   " tokens: the state has rollback depth %" PRId64
                   "; create it with a larger one or restore a snapshot",
                   tokens, slot.length, depth);
  if (tokens == 0)
    return Status();
  int64_t target = slot.length - tokens;
  if (target < slot.reach - depth)
    return failure(HYB_OUT_OF_RANGE,
                   "cannot take back %" PRId64 " of %" PRId64
                   " tokens: slot %" PRId64 " has held %" PRId64
                   ", and the state has rollback depth %" PRId64
                   "; create it with a larger one or restore a snapshot",
                   tokens, slot.length, slotIndex, slot.reach, depth);
  if (slot.checkpoints.empty() || slot.checkpoints.front().position > target)
    return failure(HYB_OUT_OF_RANGE,
                   "cannot take back %" PRId64 " tokens: slot %" PRId64
                   " was loaded from a file after token %" PRId64
                   "; restore a snapshot",
                   tokens, slotIndex, target);
  int64_t first = slot.checkpoints.front().position;
  size_t kept = slot.checkpoints.size();
  while (slot.checkpoints[kept - 1].position > target)
    --kept;
  int64_t position = slot.checkpoints[kept - 1].position;
  auto begin = slot.history.begin() + (position - first);
  std::vector<int32_t> again(begin, slot.history.begin() + (target - first));
  HYB_TRY(copyIn(slotIndex, /*all=*/false, slot.checkpoints[kept - 1].content));
  // Running the tokens again makes the last checkpoint once more.
  slot.checkpoints.resize(again.empty() ? kept : kept - 1);
  slot.history.erase(begin, slot.history.end());
  slot.length = position;
  if (again.empty())
    return Status();
  hyb_segment segment = {static_cast<int64_t>(again.size()), slotIndex};
  hyb_batch batch = {};
  batch.ids = again.data();
  batch.tokens = segment.length;
  batch.segments = &segment;
  batch.segment_count = 1;
  const float *ignored;
  Status status(HYB_OUT_OF_MEMORY, "out of memory");
  try {
    status = context.extend(*this, batch, HYB_LOGITS_LAST, &ignored);
  } catch (const std::bad_alloc &) {
  }
  if (!status.ok())
    HYB_TRY(reset(slotIndex));
  return status;
}

} // namespace hyb::rt
