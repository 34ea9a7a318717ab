//===- State.h - What sequences remember ------------------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CORE_STATE_H
#define HYBRID_RUNTIME_CORE_STATE_H

#include "core/Batch.h"
#include "core/Memory.h"
#include "core/Model.h"

#include <map>

namespace hyb::rt {

class Context;

/// What must be put back to be at `position` again: all states but key-value
/// caches, whose rows up to the position are still there.
struct Checkpoint {
  int64_t position = 0;
  DeviceMemory content;
};

/// A copy of one slot, and what made it able to roll back. On the device, so
/// that taking and restoring one is a copy there.
struct Snapshot {
  int64_t length = 0;
  hyb_dl_device device = {};
  std::string deviceName;
  DeviceMemory content;
  std::vector<Checkpoint> checkpoints;
  std::vector<int32_t> history;
  int64_t reach = 0; // as in State::Slot
  /// Of the model, whose tables say what the content is.
  uint64_t tables = 0;
  /// Equal for states whose slots have the same layout.
  std::vector<int64_t> slotBytes;
};

/// A pool of slots. One contiguous buffer per state of the model, with the slot
/// as its first dimension, is what the kernels see; positions are kept here.
///
/// Rolling back. The state of a recurrence cannot be run backwards, so with a
/// rollback depth a slot keeps checkpoints of it at the starts of its recent
/// calls, and the tokens since the oldest. Rolling back restores the last
/// checkpoint at or before the target and runs the tokens in between again.
/// Calls are at most a chunk long, so at most depth + chunk rows of a cache are
/// rewritten: what its ring has room for.
class State {
public:
  static Result<std::unique_ptr<State>>
  create(Model &model, const hyb_state_options &options);
  static Result<int64_t> measure(const Model &model,
                                 const hyb_state_options &options);

  const Device &device() const { return model->device(); }
  int64_t chunk() const { return shape.stateChunk; }
  int64_t length(int64_t slot) const {
    return slots[static_cast<size_t>(slot)].length;
  }
  /// Tokens that still fit.
  int64_t remaining(int64_t slot) const {
    return shape.symbols[Symbols::Context] - length(slot);
  }
  int64_t slotCount() const { return static_cast<int64_t>(slots.size()); }
  /// In the device's memory, by index in the state table.
  const std::vector<void *> &buffers() const { return bases; }
  /// All of them, and where each buffer starts and what shape it has.
  const DeviceMemory &allMemory() const { return memory; }
  int64_t bufferOffset(size_t index) const { return pieces[index].offset; }
  std::vector<int64_t> bufferShape(size_t index) const;
  ElementType bufferType(size_t index) const {
    return model->stateTable().states[index].type;
  }
  /// Fills in the symbols that belong to a state.
  void describe(CallShape &call) const;

  Status checkSlot(int64_t slot) const;
  /// Every segment has a slot of its own with room for its tokens.
  Status checkExtend(const hyb_batch &batch) const;
  /// The state is one of `model`, in whose context it is to be used.
  Status checkOwner(const Model &model) const;
  /// Before a launch list runs: keeps what rolling back will need, and makes
  /// the room that `advance` takes.
  Status remember(const std::vector<SegmentRows> &segments);
  /// After it has run; `ids` are its tokens. Cannot fail: the state has moved.
  void advance(const std::vector<SegmentRows> &segments, const int32_t *ids);
  /// Copies of what a call on these slots overwrites, one per segment; and the
  /// same put back after a call that failed half-way.
  Result<std::vector<DeviceMemory>>
  keep(const std::vector<SegmentRows> &segments) const;
  Status putBack(const std::vector<SegmentRows> &segments,
                 const std::vector<DeviceMemory> &kept);

  Status reset(int64_t slot);
  Status fork(int64_t from, int64_t to);
  Status rollback(Context &context, int64_t slot, int64_t tokens);
  Result<Snapshot> snapshot(int64_t slot) const;
  Status restore(int64_t slot, const Snapshot &snapshot);
  Status save(int64_t slot, const std::string &path) const;
  Status load(int64_t slot, const std::string &path);

private:
  struct Slot {
    int64_t length = 0;
    std::vector<Checkpoint> checkpoints;
    /// Tokens from the oldest checkpoint's position on.
    std::vector<int32_t> history;
    /// The largest length that calls have written rows for. Rows of a ring
    /// that these overwrote do not come back when tokens are taken back, so
    /// the depth counts from here.
    int64_t reach = 0;
  };
  struct Piece {
    int64_t offset; // of the buffer, in bytes
    int64_t slotBytes;
    bool rowPerToken;
    std::vector<uint64_t> slotShape;
  };

  static Result<CallShape> shapeFor(const Model &model,
                                    const hyb_state_options &options);
  Status layOut();
  /// What the sizes of the states follow from, by name, for files.
  std::map<std::string, std::string> capacities() const;
  char *place(const Piece &piece, int64_t slot) const {
    return static_cast<char *>(memory.data()) + piece.offset +
           slot * piece.slotBytes;
  }
  /// Copies a slot, all of it or what a checkpoint keeps, to and from memory of
  /// the device; `content` is made, or made anew, when its size does not fit.
  Status copyOut(int64_t slot, bool all, DeviceMemory &content) const;
  Status copyIn(int64_t slot, bool all, const DeviceMemory &content);
  Slot &at(int64_t slot) { return slots[static_cast<size_t>(slot)]; }

  Model *model = nullptr;
  CallShape shape;
  std::vector<Piece> pieces;
  std::vector<void *> bases;
  DeviceMemory memory;
  int64_t totalBytes = 0;
  std::vector<Slot> slots;
};

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CORE_STATE_H
