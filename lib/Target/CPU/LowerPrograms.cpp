//===- LowerPrograms.cpp - the body of a program as loops -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The frame of a kernel: arguments, grid, control flow. Memory access is in
// LowerMemory.cpp, arithmetic on tiles in LowerTiles.cpp.
//
//===----------------------------------------------------------------------===//

#include "LowerPrograms.h"

#include "hybrid/Target/CPU/Lower.h"
#include "hybrid/Target/CPU/Passes.h"
#include "hybrid/Target/LaunchArguments.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

namespace hybrid {
#define GEN_PASS_DEF_HYBRIDCPULOWERPROGRAMS
#define GEN_PASS_DEF_HYBRIDCPUANNOTATEPLACEMENT
#include "hybrid/Target/CPU/Passes.h.inc"
} // namespace hybrid

using namespace mlir;
using namespace hybrid;
using namespace hybrid::cpu;

ProgramLowering::ProgramLowering(tile::ProgramOp program,
                                 const LevelTraits &traits, DotFunctions &dots)
    : program(program), dots(dots), placement(program, traits),
      builder(program), b(program.getLoc(), builder, traits) {}

LogicalResult ProgramLowering::run() {
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  auto type =
      b.getFunctionType({pointer, pointer, b.getI64Type(), pointer}, {});
  auto function = func::FuncOp::create(b, program.getSymName(), type);
  function->setAttr(kScratchBytesAttr,
                    b.getI64IntegerAttr(placement.getScratchBytes()));
  function.setArgAttr(3, LLVM::LLVMDialect::getNoAliasAttrName(),
                      b.getUnitAttr());
  Block *entry = function.addEntryBlock();
  b.setInsertionPointToStart(entry);
  scratch = entry->getArgument(3);
  readViews(entry->getArgument(0));
  if (failed(lowerGrid(entry->getArgument(1), entry->getArgument(2))))
    return failure();
  func::ReturnOp::create(b);
  return success();
}

void ProgramLowering::readViews(Value arguments) {
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  for (auto [number, argument] : llvm::enumerate(program.getViews())) {
    auto type = cast<tile::ViewType>(argument.getType());
    int64_t start = number * kViewBytes;
    auto field = [&](Type fieldType, int64_t offset) {
      return b.load(fieldType, b.address(arguments, offset, b.getI8Type()));
    };
    View view{LLVM::LoadOp::create(
                  b, pointer, b.address(arguments, start, b.getI8Type()), 8),
              {},
              {},
              type.getElementType()};
    auto number64 = [&](int64_t known, int64_t offset) -> Int {
      if (!ShapedType::isDynamic(known))
        return known;
      return field(b.getI64Type(), start + offset);
    };
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      view.sizes.push_back(
          number64(type.getShape()[dim], kSizesOffset + 8 * dim));
      view.strides.push_back(
          number64(type.getStrides()[dim], kStridesOffset + 8 * dim));
    }
    views[argument] = view;
  }
}

/// The ids along parallel dims are the digits of the task number, last fastest.
LogicalResult ProgramLowering::lowerGrid(Value grid, Value task) {
  unsigned rank = program.getGridRank();
  ids.resize(rank);
  int first = 0;
  while (first < int(rank) &&
         program.getOrderOf(first) != tile::Order::parallel)
    ++first;
  for (int dim = int(rank) - 1; dim >= first; --dim) {
    if (program.getOrderOf(dim) != tile::Order::parallel)
      continue;
    if (dim == first) {
      ids[dim] = task;
      break;
    }
    Value size = b.load(b.getI64Type(), b.address(grid, dim, b.getI64Type()));
    ids[dim] = arith::RemUIOp::create(b, task, size);
    task = arith::DivUIOp::create(b, task, size);
  }
  return lowerOrdered(0, grid);
}

LogicalResult ProgramLowering::lowerOrdered(unsigned dim, Value grid) {
  if (dim == program.getGridRank())
    return lowerBlock(program.getBlock());
  if (program.getOrderOf(dim) == tile::Order::parallel)
    return lowerOrdered(dim + 1, grid);
  Value size = b.load(b.getI64Type(), b.address(grid, dim, b.getI64Type()));
  LogicalResult result = success();
  b.loop(0, size, 1, [&](Value iv) {
    ids[dim] = iv;
    result = lowerOrdered(dim + 1, grid);
  });
  return result;
}

LogicalResult ProgramLowering::lowerBlock(Block &block) {
  for (Operation &op : block)
    if (failed(lower(&op)))
      return failure();
  return success();
}

LogicalResult ProgramLowering::lower(Operation *op) {
  b.setLoc(op->getLoc());
  bool onTiles = llvm::any_of(op->getResults(), isTile);
  if (onTiles && op->getNumResults() == 1 &&
      llvm::is_contained({Home::Fused, Home::Alias},
                         placement.homeOf(op->getResult(0))))
    return success();
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<scf::ForOp>([&](auto loop) { return lowerFor(loop); })
      .Case<scf::IfOp>([&](auto branch) { return lowerIf(branch); })
      // Ends of blocks are made with the op around them.
      .Case<scf::YieldOp, tile::ReturnOp>([&](auto) { return success(); })
      .Case<tile::IdOp>([&](tile::IdOp id) {
        mapping.map(id.getResult(), b.toIndex(ids[id.getDim()]));
        return success();
      })
      .Case<tile::DimOp>([&](tile::DimOp dim) {
        Int size = views[dim.getView()].sizes[dim.getDim()];
        mapping.map(dim.getResult(), b.toIndex(b.valueOf(size)));
        return success();
      })
      .Case<tile::LoadScalarOp>([&](tile::LoadScalarOp load) {
        Place place = placeInView(load.getView(), load.getIndices(), {}, {});
        mapping.map(load.getValue(),
                    b.load(place.element, place.addressOf(b, {})));
        return success();
      })
      .Case<tile::StoreScalarOp>([&](tile::StoreScalarOp store) {
        Place place = placeInView(store.getView(), store.getIndices(), {}, {});
        b.store(scalar(store.getValue()), place.addressOf(b, {}));
        return success();
      })
      .Case<tile::LoadOp>([&](auto load) { return lowerLoad(load), success(); })
      .Case<tile::StoreOp>(
          [&](auto store) { return lowerStore(store), success(); })
      .Case<tile::AccumulateOp>(
          [&](auto sum) { return lowerAccumulate(sum), success(); })
      .Case<tile::LoadRowsOp>(
          [&](auto load) { return lowerLoadRows(load), success(); })
      .Case<tile::StoreRowsOp>(
          [&](auto store) { return lowerStoreRows(store), success(); })
      .Case<tile::DotOp>([&](tile::DotOp dot) -> LogicalResult {
        for (Value factor : {dot.getA(), dot.getB()})
          if (Type element = getElementTypeOrSelf(factor); !element.isF32())
            return dot.emitOpError("multiplies tiles of ")
                   << element
                   << ", the CPU multiplies f32; widen them with arith.extf";
        return lowerDot(dot), success();
      })
      .Case<tile::ReduceOp>(
          [&](auto reduce) { return lowerReduce(reduce), success(); })
      .Case<tile::PrefixSumOp>(
          [&](auto prefix) { return lowerPrefixSum(prefix), success(); })
      .Case<tile::UnitLowerInverseOp>(
          [&](auto op) { return lowerInverse(op), success(); })
      .Case<tile::ConcatOp>(
          [&](auto concat) { return lowerConcat(concat), success(); })
      .Case<tile::TransposeOp>(
          [&](auto op) { return lowerTranspose(op), success(); })
      .Case<tile::ReshapeOp>(
          [&](auto reshape) { return lowerReshape(reshape), success(); })
      .Case<tensor::ExtractOp>(
          [&](auto extract) { return lowerExtract(extract), success(); })
      .Default([&](Operation *other) -> LogicalResult {
        bool known =
            isa<arith::ArithDialect, math::MathDialect, tile::TileDialect>(
                other->getDialect());
        if (!known || other->getNumRegions() != 0)
          return other->emitOpError(
              "is not supported in a program for the CPU; use arith, math, "
              "scf.for, scf.if, tensor.extract and tile ops");
        if (onTiles) {
          evaluate(other->getResult(0));
          return success();
        }
        b.clone(*other, mapping);
        return success();
      });
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

SmallVector<Value> ProgramLowering::scalarsOf(ValueRange values) {
  SmallVector<Value> scalars;
  for (Value value : values)
    if (!isTile(value))
      scalars.push_back(scalar(value));
  return scalars;
}

/// Copies tiles to the buffers that a loop or branch hands them over in, unless
/// they are there already.
void ProgramLowering::copyCarried(ValueRange from, ValueRange to) {
  for (auto [source, target] : llvm::zip_equal(from, to))
    if (isTile(source) && !placement.sharesBuffer(source, target))
      storeTile(source, bufferOf(target));
}

LogicalResult ProgramLowering::lowerFor(scf::ForOp loop) {
  auto carried = loop.getRegionIterArgs();
  Operation *yield = loop.getBody()->getTerminator();
  // An exchange of two tiles would need a third buffer.
  for (auto [number, next] : llvm::enumerate(yield->getOperands()))
    for (auto [other, argument] : llvm::enumerate(carried))
      if (number != other && isTile(next) &&
          placement.homeOf(next) == Home::Buffer && isTile(argument) &&
          placement.sharesBuffer(next, argument))
        return yield->emitOpError("hands tile ")
               << other << " of the loop over as tile " << number
               << ", which the CPU cannot do in place; write a new tile, such "
                  "as its sum with 0";

  copyCarried(loop.getInitArgs(), carried);
  auto op = scf::ForOp::create(
      b, scalar(loop.getLowerBound()), scalar(loop.getUpperBound()),
      scalar(loop.getStep()), scalarsOf(loop.getInitArgs()));
  mapping.map(loop.getInductionVar(), op.getInductionVar());
  unsigned scalars = 0;
  for (auto [argument, result] : llvm::zip_equal(carried, loop.getResults())) {
    if (isTile(argument))
      continue;
    mapping.map(argument, op.getRegionIterArg(scalars));
    mapping.map(result, op.getResult(scalars++));
  }
  if (scalars == 0)
    op.getBody()->getTerminator()->erase();
  b.setInsertionPointToEnd(op.getBody());
  if (failed(lowerBlock(*loop.getBody())))
    return failure();
  copyCarried(yield->getOperands(), carried);
  scf::YieldOp::create(b, scalarsOf(yield->getOperands()));
  b.setInsertionPointAfter(op);
  copyCarried(ValueRange(carried), loop.getResults());
  return success();
}

LogicalResult ProgramLowering::lowerIf(scf::IfOp branch) {
  SmallVector<Type> types;
  for (Value result : branch.getResults())
    if (!isTile(result))
      types.push_back(result.getType());
  bool hasElse = !branch.getElseRegion().empty();
  auto op = scf::IfOp::create(b, types, scalar(branch.getCondition()), hasElse);
  unsigned next = 0;
  for (Value result : branch.getResults())
    if (!isTile(result))
      mapping.map(result, op.getResult(next++));
  OpBuilder::InsertionGuard guard(b);
  for (auto [from, to] :
       llvm::zip_equal(branch->getRegions(), op->getRegions())) {
    if (from.empty())
      continue;
    if (to.empty())
      to.emplaceBlock();
    Block &block = to.front();
    if (!block.empty())
      block.getTerminator()->erase();
    b.setInsertionPointToEnd(&block);
    if (failed(lowerBlock(from.front())))
      return failure();
    ValueRange results = from.front().getTerminator()->getOperands();
    copyCarried(results, branch.getResults());
    scf::YieldOp::create(b, scalarsOf(results));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Passes
//===----------------------------------------------------------------------===//

FailureOr<unsigned> hybrid::cpu::lowerPrograms(ModuleOp module,
                                               const LevelTraits &traits) {
  DotFunctions dots(module);
  unsigned count = 0;
  for (auto program :
       llvm::make_early_inc_range(module.getOps<tile::ProgramOp>())) {
    // Names are for schedules; scalar copies of named ops leave the program.
    program.walk([](Operation *op) {
      op->removeDiscardableAttr(tile::TileDialect::kNameAttr);
    });
    if (failed(ProgramLowering(program, traits, dots).run()))
      return failure();
    program.erase();
    ++count;
  }
  for (auto schedule :
       llvm::make_early_inc_range(module.getOps<tile::ScheduleOp>()))
    schedule.erase();
  return count;
}

namespace {

struct LowerProgramsPass
    : hybrid::impl::HybridCPULowerProgramsBase<LowerProgramsPass> {
  using Base::Base;

  void runOnOperation() override {
    std::optional<Level> wanted = levelNamed(level);
    if (!wanted) {
      getOperation().emitError("unknown CPU level '")
          << level << "'; use x86-64, x86-64-v3 or x86-64-v4";
      return signalPassFailure();
    }
    FailureOr<unsigned> count =
        lowerPrograms(getOperation(), traitsOf(*wanted));
    if (failed(count))
      return signalPassFailure();
    lowered += *count;
  }
};

struct AnnotatePlacementPass
    : hybrid::impl::HybridCPUAnnotatePlacementBase<AnnotatePlacementPass> {
  void runOnOperation() override {
    Builder builder(&getContext());
    for (auto program : getOperation().getOps<tile::ProgramOp>()) {
      Placement placement(program, traitsOf(Level::V4));
      auto describe = [&](Value tile) -> Attribute {
        Home home = placement.homeOf(tile);
        std::string text = nameOf(home).str();
        if (home == Home::Buffer)
          text += " " + std::to_string(placement.offsetOf(tile));
        return builder.getStringAttr(text);
      };
      program.getBody().walk([&](Operation *op) {
        SmallVector<Attribute> homes;
        for (Value result : op->getResults())
          if (isTile(result))
            homes.push_back(describe(result));
        if (!homes.empty())
          op->setAttr("cpu.home", builder.getArrayAttr(homes));
      });
      program->setAttr("cpu.scratch_bytes",
                       builder.getI64IntegerAttr(placement.getScratchBytes()));
    }
  }
};

} // namespace
