//===- Homes.cpp - which tiles get memory -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Homes.h"

#include "Place.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::cpu;

StringRef hybrid::cpu::nameOf(Home home) {
  switch (home) {
  case Home::Fused:
    return "fused";
  case Home::Alias:
    return "alias";
  case Home::InView:
    return "in_view";
  case Home::Constant:
    return "constant";
  case Home::Buffer:
    break;
  }
  return "buffer";
}

bool hybrid::cpu::isElementwise(Operation *op) {
  return OpTrait::hasElementwiseMappableTraits(op) &&
         op->getNumResults() == 1 && isTile(op->getResult(0));
}

/// Whether computing it once per use costs more than keeping it.
static bool isCostly(Operation *op) {
  return (isa<math::MathDialect>(op->getDialect()) && !isa<math::AbsFOp>(op)) ||
         isa<arith::DivFOp, arith::DivSIOp, arith::RemSIOp>(op);
}

/// Masks and indices are computed wherever they are used.
static bool isFree(Value tile) {
  return getElementTypeOrSelf(tile.getType()).isInteger();
}

/// A shape change that a loop nest follows by walking its input differently,
/// with vectors still along the last dim.
static bool isWalk(Operation *op) {
  if (isa<tile::BroadcastOp, tile::SliceOp>(op))
    return true;
  if (auto reshape = dyn_cast<tile::ReshapeOp>(op))
    return differInUnitDims(shapeOf(reshape.getInput()),
                            shapeOf(reshape.getResult()));
  if (auto transpose = dyn_cast<tile::TransposeOp>(op)) {
    ArrayRef<int64_t> permutation = transpose.getPermutation();
    return permutation.back() == int64_t(permutation.size()) - 1;
  }
  return false;
}

/// Whether the use reads memory and not element by element in a loop nest.
static bool needsMemory(OpOperand &use) {
  Operation *user = use.getOwner();
  if (isa<tile::DotOp>(user))
    return use.getOperandNumber() < 2;
  if (auto transpose = dyn_cast<tile::TransposeOp>(user))
    return transpose.getPermutation().size() == 2;
  if (isa<tile::ReshapeOp>(user))
    return !isWalk(user);
  // Rows are moved one by one.
  if (isa<tile::LoadRowsOp, tile::StoreRowsOp>(user))
    return true;
  return isa<tile::UnitLowerInverseOp, tensor::ExtractOp>(user);
}

static bool writesMemory(Operation *op) {
  return isa<tile::StoreOp, tile::AccumulateOp, tile::StoreScalarOp,
             tile::StoreRowsOp>(op);
}

Homes::Homes(tile::ProgramOp program) : program(program) {
  number(program.getBlock());
  chooseHomes();
}

void Homes::number(Block &block) {
  auto collect = [&](ValueRange values) {
    for (Value value : values)
      if (isTile(value))
        tiles.push_back(value);
  };
  if (block.getParentOp() != program)
    collect(block.getArguments());
  for (Operation &op : block) {
    begins[&op] = ops.size() + ends.size();
    ops.push_back(&op);
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        number(inner);
    ends[&op] = op.getNumRegions() == 0 ? begins[&op]
                                        : Position(ops.size() + ends.size());
    collect(op.getResults());
  }
}

//===----------------------------------------------------------------------===//
// Homes
//===----------------------------------------------------------------------===//

void Homes::chooseHomes() {
  // From the last tile to the first: what becomes of a tile depends on its
  // users.
  for (Value tile : llvm::reverse(tiles))
    homes[tile] = chooseHome(tile);
  for (Operation *op : ops)
    if (auto load = dyn_cast<tile::LoadOp>(op); load && mustCopyOut(load))
      homes[load.getTile()] = Home::Buffer;
}

Home Homes::chooseHome(Value tile) {
  Operation *op = tile.getDefiningOp();
  if (!op)
    return Home::Buffer;
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    if (!isa<SplatElementsAttr>(constant.getValue()))
      return Home::Constant;
  if (isa<arith::ConstantOp, tile::SplatOp, tile::IotaOp>(op))
    return usersCanFuse(tile) ? Home::Fused : Home::Buffer;
  if (isa<tile::LoadOp>(op))
    return Home::InView;
  if (isElementwise(op))
    return chooseElementwiseHome(tile);
  if (isa<tile::BroadcastOp, tile::SliceOp, tile::ReshapeOp, tile::TransposeOp>(
          op))
    return chooseShapeHome(op, op->getOperand(0));
  return Home::Buffer;
}

bool Homes::usersCanFuse(Value tile) const {
  return llvm::none_of(tile.getUses(), [&](OpOperand &use) {
    if (needsMemory(use))
      return true;
    Operation *user = use.getOwner();
    return isWalk(user) && homes.lookup(user->getResult(0)) == Home::Alias;
  });
}

Home Homes::chooseElementwiseHome(Value tile) {
  if (!usersCanFuse(tile))
    return Home::Buffer;
  if (isFree(tile))
    return Home::Fused;
  llvm::SetVector<Operation *> readers;
  collectReaders(tile, readers);
  if (readers.size() != 1)
    return Home::Buffer;
  // What a loop carries and an accumulator are computed in place instead.
  Operation *reader = readers.front();
  if (reader->getBlock() != tile.getParentBlock() ||
      isa<scf::YieldOp, scf::ForOp, tile::DotOp>(reader))
    return Home::Buffer;
  if (isCostly(tile.getDefiningOp())) {
    // Stretched, it would be computed again for every element.
    SmallVector<Value> work{tile};
    while (!work.empty()) {
      for (Operation *user : work.pop_back_val().getUsers()) {
        if (isa<tile::BroadcastOp>(user))
          return Home::Buffer;
        if (user != reader && user->getNumResults() == 1)
          work.push_back(user->getResult(0));
      }
    }
  }
  return Home::Fused;
}

Home Homes::chooseShapeHome(Operation *op, Value input) {
  Value result = op->getResult(0);
  if (isWalk(op))
    return usersCanFuse(result) ? Home::Fused : Home::Alias;
  if (isa<tile::ReshapeOp>(op)) {
    // Only rows without gaps can be read in another shape.
    Operation *source = input.getDefiningOp();
    bool gaps = source && (isWalk(source) || isa<tile::LoadOp>(source) ||
                           (isa<tile::TransposeOp>(source) &&
                            homes.lookup(input) == Home::Alias));
    return gaps ? Home::Buffer : Home::Alias;
  }
  // A product reads a transposed matrix as it lies.
  bool onlyProducts = llvm::all_of(result.getUses(), [](OpOperand &use) {
    return isa<tile::DotOp>(use.getOwner()) && needsMemory(use);
  });
  return onlyProducts && shapeOf(result).size() == 2 ? Home::Alias
                                                     : Home::Buffer;
}

void Homes::collectReaders(Value tile,
                           llvm::SetVector<Operation *> &readers) const {
  for (Operation *user : tile.getUsers()) {
    bool through = user->getNumResults() == 1 && user->getNumRegions() == 0 &&
                   isTile(user->getResult(0)) &&
                   llvm::is_contained({Home::Fused, Home::Alias},
                                      homes.lookup(user->getResult(0)));
    if (through)
      collectReaders(user->getResult(0), readers);
    else
      readers.insert(user);
  }
}

/// Whether a loaded block has to be copied even if it lies inside its limits.
bool Homes::mustCopyOut(tile::LoadOp load) const {
  ArrayRef<int64_t> shape = shapeOf(load.getTile());
  int64_t viewRank = cast<tile::ViewType>(load.getView().getType()).getRank();
  if (load.getDims().back() != viewRank - 1 && shape.back() != 1)
    return true;
  llvm::SetVector<Operation *> readers;
  collectReaders(load.getTile(), readers);
  // Read again and again, the rows are better off side by side.
  if (llvm::any_of(readers, [&](Operation *reader) {
        return readPosition(reader, load.getTile()) != begins.lookup(reader);
      }))
    return true;
  Position last = lastRead(load.getTile());
  return llvm::any_of(ops, [&](Operation *op) {
    Position position = begins.lookup(op);
    if (!writesMemory(op) || position < begins.lookup(load) || position > last)
      return false;
    // Element for element it may go back to where it came from.
    auto store = dyn_cast<tile::StoreOp>(op);
    return !(store && position == last &&
             store.getIndices() == load.getIndices() &&
             store.getDims() == load.getDims() &&
             readsInOrder(store.getTile(), load.getTile()));
  });
}

//===----------------------------------------------------------------------===//
// Reads
//===----------------------------------------------------------------------===//

Homes::Position Homes::readPosition(Operation *reader, Value tile) const {
  // A tile from outside a loop is read until the loop ends.
  Position position = begins.lookup(reader);
  for (Operation *op = reader; op->getBlock() != tile.getParentBlock();) {
    op = op->getParentOp();
    if (isa<scf::ForOp>(op))
      position = ends.lookup(op);
  }
  return position;
}

Homes::Position Homes::lastRead(Value tile) const {
  Operation *op = tile.getDefiningOp();
  Position last = op ? ends.lookup(op)
                     : begins.lookup(tile.getParentBlock()->getParentOp());
  llvm::SetVector<Operation *> readers;
  collectReaders(tile, readers);
  for (Operation *reader : readers)
    last = std::max(last, readPosition(reader, tile));
  return last;
}

/// Whether an expression inside a nest reads the tile.
bool Homes::reaches(Value from, Value tile) const {
  if (from == tile)
    return true;
  Operation *source = from.getDefiningOp();
  if (!source ||
      !llvm::is_contained({Home::Fused, Home::Alias}, homes.lookup(from)))
    return false;
  return llvm::any_of(source->getOperands(), [&](Value operand) {
    return isTile(operand) && reaches(operand, tile);
  });
}

/// Whether each element of the expression reads no other element of the tile
/// than that of the same index.
bool Homes::readsInOrder(Value expression, Value tile) const {
  if (expression == tile)
    return true;
  Operation *source = expression.getDefiningOp();
  if (source && homes.lookup(expression) == Home::Fused &&
      isElementwise(source))
    return llvm::all_of(source->getOperands(), [&](Value operand) {
      return !isTile(operand) || readsInOrder(operand, tile);
    });
  return !reaches(expression, tile);
}
