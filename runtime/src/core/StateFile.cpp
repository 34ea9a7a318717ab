//===- StateFile.cpp -----------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Copies of slots: snapshots in memory, and `.safetensors` files with one
// tensor per state, named by its path and shaped as in one slot.
//
//===----------------------------------------------------------------------===//

#include "core/State.h"
#include "io/Safetensors.h"

#include <cinttypes>

namespace hyb::rt {

namespace {

std::string hexadecimal(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016" PRIx64, value);
  return text;
}

/// A non-negative integer of the metadata, or nothing.
std::optional<int64_t> metadataNumber(const SafetensorsView &view,
                                      const char *key) {
  auto it = view.metadata().find(key);
  if (it == view.metadata().end() || it->second.empty() ||
      it->second.size() > 18 ||
      it->second.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoll(it->second);
}

} // namespace

Result<Snapshot> State::snapshot(int64_t slot) const {
  HYB_TRY(checkSlot(slot));
  const Slot &source = slots[static_cast<size_t>(slot)];
  Snapshot result;
  result.device = device().dlDevice();
  result.deviceName = device().name();
  result.length = source.length;
  result.checkpoints = source.checkpoints;
  result.history = source.history;
  result.reach = source.reach;
  result.tables = model->fingerprint();
  HYB_TRY(copyOut(slot, /*all=*/true, result.content));
  for (const Piece &piece : pieces)
    result.slotBytes.push_back(piece.slotBytes);
  return result;
}

Status State::restore(int64_t slot, const Snapshot &snapshot) {
  HYB_TRY(checkSlot(slot));
  std::vector<int64_t> slotBytes;
  for (const Piece &piece : pieces)
    slotBytes.push_back(piece.slotBytes);
  if (slotBytes != snapshot.slotBytes ||
      snapshot.tables != model->fingerprint() ||
      snapshot.length > shape.symbols[Symbols::Context])
    return failure(HYB_MISMATCH,
                   "snapshot of %" PRId64
                   " bytes is of another kind of state; create both states "
                   "from one model, with the same context, chunk and rollback "
                   "depth",
                   snapshot.content.bytes());
  hyb_dl_device here = device().dlDevice();
  if (here.type != snapshot.device.type || here.index != snapshot.device.index)
    return failure(HYB_MISMATCH,
                   "snapshot lies on %s, the state on %s; use "
                   "hyb_state_save and hyb_state_load between devices",
                   snapshot.deviceName.c_str(), device().name());
  // Copied before the memory changes, because it may fail.
  Slot restored{snapshot.length, snapshot.checkpoints, snapshot.history,
                snapshot.reach};
  HYB_TRY(copyIn(slot, /*all=*/true, snapshot.content));
  at(slot) = std::move(restored);
  return Status();
}

std::map<std::string, std::string> State::capacities() const {
  return {{"context", std::to_string(shape.symbols[Symbols::Context])},
          {"chunk", std::to_string(chunk())},
          {"rollback depth", std::to_string(shape.symbols[Symbols::Depth])}};
}

Status State::save(int64_t slot, const std::string &path) const {
  HYB_TRY(checkSlot(slot));
  std::vector<HostView> views;
  std::vector<TensorToWrite> tensors;
  for (size_t i = 0; i < pieces.size(); ++i) {
    HYB_ASSIGN(HostView view,
               HostView::of(model->device(), place(pieces[i], slot),
                            pieces[i].slotBytes));
    views.push_back(std::move(view));
    tensors.push_back({model->stateTable().states[i].path,
                       dtypeOf(bufferType(i)), pieces[i].slotShape,
                       views.back().bytes()});
  }
  std::map<std::string, std::string> metadata = capacities();
  metadata["format"] = "hybridc state";
  metadata["model"] = model->meta().name;
  metadata["tables"] = hexadecimal(model->fingerprint());
  metadata["length"] = std::to_string(length(slot));
  return writeSafetensors(path, tensors, metadata);
}

Status State::load(int64_t slot, const std::string &path) {
  HYB_TRY(checkSlot(slot));
  HYB_ASSIGN(SafetensorsFile file, SafetensorsFile::open(path));
  const SafetensorsView &view = file.view;
  auto tables = view.metadata().find("tables");
  if (tables == view.metadata().end() ||
      tables->second != hexadecimal(model->fingerprint()))
    return failure(
        HYB_MISMATCH,
        "%s: not a state of model %s; save it with the same artefact",
        path.c_str(), model->meta().name.c_str());
  std::optional<int64_t> fileLength = metadataNumber(view, "length");
  int64_t context = shape.symbols[Symbols::Context];
  if (!fileLength || *fileLength > context)
    return failure(HYB_MISMATCH,
                   "%s: holds %" PRId64
                   " tokens, the state has context %" PRId64
                   "; create it with a longer context",
                   path.c_str(), fileLength.value_or(-1), context);
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::string &name = model->stateTable().states[i].path;
    const TensorEntry *entry = view.find(name);
    if (entry && entry->type == dtypeOf(bufferType(i)) &&
        entry->shape == pieces[i].slotShape)
      continue;
    std::map<std::string, std::string> capacities = this->capacities();
    std::string theirs, ours;
    for (const auto &[key, value] : capacities) {
      auto found = view.metadata().find(key);
      const char *comma = theirs.empty() ? "" : ", ";
      theirs += comma + key + " " +
                (found == view.metadata().end() ? "unrecorded" : found->second);
      ours += comma + key + " " + value;
    }
    return failure(HYB_MISMATCH,
                   "%s: %s has shape %s, the state has %s: the file is of a "
                   "state with %s, this one has %s; create it with those of "
                   "the file (the default chunk depends on the device and the "
                   "number of slots)",
                   path.c_str(), name.c_str(),
                   entry ? shapeText(entry->shape).c_str() : "none",
                   shapeText(pieces[i].slotShape).c_str(), theirs.c_str(),
                   ours.c_str());
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    Bytes data = view.data(*view.find(model->stateTable().states[i].path));
    HYB_TRY(model->device().write(place(pieces[i], slot), data.data,
                                  static_cast<int64_t>(data.size)));
  }
  at(slot) = Slot();
  at(slot).length = at(slot).reach = *fileLength;
  return Status();
}

} // namespace hyb::rt
