//===- Placement.cpp - where in scratch each tile lies -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Placement.h"

#include "CodeBuilder.h"
#include "Dot.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::cpu;

static int64_t bytesOf(Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  return type.getNumElements() * storedBytes(type.getElementType());
}

Placement::Placement(tile::ProgramOp program, const LevelTraits &traits)
    : homes(program), traits(traits) {
  createStorages();
  collectHandovers();
  for (const Handover &handover : handovers)
    merge(handover);
  assignOffsets();
}

Placement::StorageId Placement::addStorage(int64_t bytes, Position first,
                                           Position last) {
  StorageId id = storages.size();
  storages.push_back({bytes, {{first, last, id}}});
  parents.push_back(id);
  return id;
}

void Placement::createStorages() {
  for (Value tile : homes.getTiles()) {
    Home home = homes.of(tile);
    // Only a block that may be ragged needs memory beside its view.
    auto load = tile.getDefiningOp<tile::LoadOp>();
    bool inView = home == Home::InView && load.getLimits().empty();
    if ((home != Home::Buffer && home != Home::InView) || inView)
      continue;
    Position last = homes.lastRead(tile);
    Operation *op = tile.getDefiningOp();
    if (!op) {
      // Carried by a loop: read in the body, written again at its end.
      Operation *loop = tile.getParentBlock()->getParentOp();
      Operation *yield = tile.getParentBlock()->getTerminator();
      StorageId id = addStorage(bytesOf(tile), homes.beginOf(loop), last);
      storages[id].life.push_back(
          {homes.beginOf(yield), homes.endOf(loop), id});
      storageOf[tile] = id;
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      StorageId id = addStorage(bytesOf(tile), homes.endOf(op), last);
      for (Region *region :
           {&branch.getThenRegion(), &branch.getElseRegion()}) {
        Position yield = homes.beginOf(region->front().getTerminator());
        storages[id].life.push_back({yield, yield, id});
      }
      storages[id].life.back().last = homes.endOf(op);
      storageOf[tile] = id;
    } else {
      storageOf[tile] = addStorage(bytesOf(tile), homes.endOf(op), last);
    }
  }
  for (Operation *op : homes.getOps())
    if (auto dot = dyn_cast<tile::DotOp>(op)) {
      int64_t depth = shapeOf(dot.getA())[dot.getTransposeA() ? 0 : 1];
      workspaces[op] = addStorage(panelBytes(traits, depth), homes.beginOf(op),
                                  homes.beginOf(op));
    }
}

Placement::StorageId Placement::find(StorageId id) const {
  while (parents[id] != id)
    id = parents[id] = parents[parents[id]];
  return id;
}

bool Placement::sharesBuffer(Value a, Value b) const {
  auto first = storageOf.find(a), second = storageOf.find(b);
  return homes.of(a) == Home::Buffer && homes.of(b) == Home::Buffer &&
         first != storageOf.end() && second != storageOf.end() &&
         find(first->second) == find(second->second);
}

void Placement::collectHandovers() {
  for (Operation *op : homes.getOps()) {
    collectInPlace(op);
    collectCarried(op);
  }
  for (const Handover &handover : handovers) {
    StorageId from = storageOf.lookup(handover.from),
              to = storageOf.lookup(handover.to);
    handoverAt.insert({from, to, handover.position});
    handoverAt.insert({to, from, handover.position});
  }
}

void Placement::collectInPlace(Operation *op) {
  if (op->getNumResults() != 1 || homes.of(op->getResult(0)) != Home::Buffer)
    return;
  Value result = op->getResult(0);
  Position position = homes.beginOf(op);
  auto add = [&](Value from) {
    if (homes.of(from) == Home::Buffer)
      handovers.push_back({from, result, position});
  };
  if (auto dot = dyn_cast<tile::DotOp>(op)) {
    // The factors are read until the end.
    if (!homes.reaches(dot.getA(), dot.getAcc()) &&
        !homes.reaches(dot.getB(), dot.getAcc()))
      add(dot.getAcc());
    return;
  }
  if (!isElementwise(op) && !isa<tile::PrefixSumOp>(op))
    return;
  SmallVector<Value> work(op->getOperands());
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (llvm::all_of(op->getOperands(), [&](Value operand) {
          return !isTile(operand) || homes.readsInOrder(operand, value);
        }))
      add(value);
    Operation *source = value.getDefiningOp();
    if (source && homes.of(value) == Home::Fused)
      work.append(source->operand_begin(), source->operand_end());
  }
}

void Placement::collectCarried(Operation *op) {
  auto add = [&](Value from, Value to, Position position) {
    if (homes.of(from) == Home::Buffer && homes.of(to) == Home::Buffer)
      handovers.push_back({from, to, position});
  };
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    Operation *yield = loop.getBody()->getTerminator();
    for (auto [init, carried, next, result] :
         llvm::zip_equal(loop.getInitArgs(), loop.getRegionIterArgs(),
                         yield->getOperands(), loop.getResults())) {
      add(carried, result, homes.endOf(op));
      add(init, carried, homes.beginOf(op));
      add(next, carried, homes.beginOf(yield));
    }
  } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
    for (Region *region : {&branch.getThenRegion(), &branch.getElseRegion()}) {
      if (region->empty())
        continue;
      Operation *yield = region->front().getTerminator();
      for (auto [value, result] :
           llvm::zip_equal(yield->getOperands(), op->getResults()))
        add(value, result, homes.beginOf(yield));
    }
  }
}

/// Lets two tiles use one buffer unless their lives, or those of tiles that
/// share with them already, overlap elsewhere than at a handover.
void Placement::merge(const Handover &handover) {
  StorageId a = find(storageOf.lookup(handover.from)),
            c = find(storageOf.lookup(handover.to));
  if (a == c || storages[a].bytes != storages[c].bytes)
    return;
  for (const Segment &x : storages[a].life) {
    for (const Segment &y : storages[c].life) {
      Position first = std::max(x.first, y.first),
               last = std::min(x.last, y.last);
      if (first > last)
        continue;
      if (first != last || !handoverAt.contains({x.tile, y.tile, first}))
        return;
    }
  }
  storages[a].life.append(storages[c].life);
  parents[c] = a;
}

void Placement::assignOffsets() {
  constexpr int64_t kAlignment = 64;
  SmallVector<StorageId> roots;
  for (StorageId id = 0; id < storages.size(); ++id)
    if (find(id) == id)
      roots.push_back(id);
  llvm::sort(roots, [&](StorageId a, StorageId b) {
    return std::pair(storages[b].bytes, a) < std::pair(storages[a].bytes, b);
  });
  auto overlap = [](const Storage &a, const Storage &b) {
    return llvm::any_of(a.life, [&](const Segment &x) {
      return llvm::any_of(b.life, [&](const Segment &y) {
        return x.first <= y.last && y.first <= x.last;
      });
    });
  };
  // The lowest offset at which nothing placed before is alive.
  SmallVector<StorageId> placed;
  for (StorageId id : roots) {
    Storage &storage = storages[id];
    int64_t size = llvm::alignTo(storage.bytes, kAlignment);
    for (const StorageId other : placed) {
      const Storage &earlier = storages[other];
      if (overlap(storage, earlier) &&
          storage.offset < earlier.offset + earlier.bytes &&
          earlier.offset < storage.offset + size)
        storage.offset =
            llvm::alignTo(earlier.offset + earlier.bytes, kAlignment);
    }
    auto *at = llvm::find_if(placed, [&](StorageId other) {
      return storages[other].offset > storage.offset;
    });
    placed.insert(at, id);
    scratchBytes = std::max(scratchBytes, storage.offset + size);
  }
}

int64_t Placement::offsetOf(Value tile) const {
  return storages[find(storageOf.lookup(tile))].offset;
}

int64_t Placement::workspaceOf(Operation *op) const {
  return storages[find(workspaces.lookup(op))].offset;
}
