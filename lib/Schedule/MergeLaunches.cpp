//===- MergeLaunches.cpp - independent launches as one --------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MergeLaunches.h"

#include "hybrid/Hybrid/HybridOps.h"
#include "hybrid/Tile/TileDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace hybrid;

/// Most launches in one, and dims of a grid.
static constexpr size_t kMostLaunches = 6;
static constexpr unsigned kMostDims = 4;

namespace {
struct Member {
  DispatchOp dispatch;
  tile::ProgramOp program;
  /// Of the program's views: those of inputs come first.
  unsigned inputViews;
};

/// Launches of one block that become one, in order.
class Merge {
public:
  Merge(ProgramTable &programs, SmallVector<Member> members)
      : programs(programs), members(std::move(members)) {}
  void run();

private:
  tile::ProgramOp makeProgram();
  void emitPoint(OpBuilder &builder, tile::ProgramOp merged, unsigned n,
                 ArrayRef<unsigned> viewNumbers);
  void moveReadersBehind(Operation *merged);

  ProgramTable &programs;
  SmallVector<Member> members;
};
} // namespace

static std::optional<Member> memberOf(DispatchOp dispatch) {
  auto program = SymbolTable::lookupNearestSymbolFrom<tile::ProgramOp>(
      dispatch, dispatch.getProgramAttr());
  auto hasRecord = [&](tile::ScheduleOp record) {
    return record.getProgram() == program.getSymName();
  };
  auto module = program->getParentOfType<ModuleOp>();
  bool isSmall =
      !program->walk([](tile::DotOp) { return WalkResult::interrupt(); })
           .wasInterrupted();
  if (!isSmall || program.getGridRank() + 1 > kMostDims ||
      llvm::any_of(module.getOps<tile::ScheduleOp>(), hasRecord))
    return std::nullopt;
  unsigned views = 0;
  for (Value input : dispatch.getInputs())
    views += isa<SegmentsType>(input.getType()) ? 2 : 1;
  return Member{dispatch, program, views};
}

static bool haveOneGrid(tile::ProgramOp x, tile::ProgramOp y) {
  return x.getGrid() == y.getGrid() && x.getOrderAttr() == y.getOrderAttr();
}

/// Whether `op` needs a result of one of `from`, which stand before it.
static bool needs(Operation *op, ArrayRef<Member> from) {
  llvm::SmallPtrSet<Operation *, 32> later;
  for (const Member &member : from)
    later.insert(member.dispatch);
  auto reads = [&](Operation *reader) {
    return reader
        ->walk([&](Operation *inner) {
          for (Value operand : inner->getOperands())
            if (Operation *def = operand.getDefiningOp())
              if (later.contains(def))
                return WalkResult::interrupt();
          return WalkResult::advance();
        })
        .wasInterrupted();
  };
  Operation *first = from.front().dispatch;
  for (Operation *at = first->getNextNode(); at != op; at = at->getNextNode())
    if (reads(at))
      later.insert(at);
  return reads(op);
}

/// Whether `op`, or something between the members and it, overwrites what a
/// member reads, so that the member cannot run later or beside it.
static bool isOverwritten(Operation *op, ArrayRef<Member> members) {
  llvm::SmallPtrSet<Value, 16> read;
  for (const Member &member : members)
    for (Value input : member.dispatch->getOperands())
      read.insert(input);
  for (Operation *at = members.front().dispatch; at != op->getNextNode();
       at = at->getNextNode()) {
    bool isMember = llvm::any_of(
        members, [&](const Member &member) { return member.dispatch == at; });
    auto overwrites = [&](DispatchOp dispatch) {
      for (unsigned n = 0; n < dispatch->getNumResults(); ++n)
        if (auto input = dispatch.getTiedInput(n))
          if (read.contains(dispatch.getInputs()[*input]))
            return WalkResult::interrupt();
      return WalkResult::advance();
    };
    if (!isMember && at->walk(overwrites).wasInterrupted())
      return true;
  }
  return false;
}

/// The body of member n, for the points that are its.
void Merge::emitPoint(OpBuilder &builder, tile::ProgramOp merged, unsigned n,
                      ArrayRef<unsigned> viewNumbers) {
  Location loc = members[n].dispatch.getLoc();
  tile::ProgramOp program = members[n].program;
  IRMapping mapping;
  for (auto [view, number] : llvm::zip_equal(program.getViews(), viewNumbers))
    mapping.map(view, merged.getViews()[number]);
  Value whose = tile::IdOp::create(builder, loc, builder.getIndexType(),
                                   builder.getI64IntegerAttr(0));
  Value mine = arith::ConstantIndexOp::create(builder, loc, n);
  Value isMine = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                       whose, mine);
  auto branch =
      scf::IfOp::create(builder, loc, isMine, /*withElseRegion=*/false);
  OpBuilder inside = OpBuilder::atBlockTerminator(branch.thenBlock());
  for (Operation &op : program.getBlock().without_terminator())
    inside.clone(op, mapping);
  branch.walk([&](Operation *op) {
    if (auto id = dyn_cast<tile::IdOp>(op))
      id.setDim(id.getDim() + 1);
    // Names are unique in a program.
    if (auto name = op->getAttrOfType<StringAttr>(tile::TileDialect::kNameAttr))
      op->setAttr(tile::TileDialect::kNameAttr,
                  builder.getStringAttr(name.getValue() + "_" + Twine(n)));
  });
}

tile::ProgramOp Merge::makeProgram() {
  tile::ProgramOp first = members.front().program;
  MLIRContext *context = first.getContext();
  // The views of all inputs, then those of all results.
  SmallVector<Type> types;
  SmallVector<SmallVector<unsigned>> numbers(members.size());
  for (bool ofInputs : {true, false})
    for (auto [n, member] : llvm::enumerate(members))
      for (auto [number, view] :
           llvm::enumerate(tile::ProgramOp(member.program).getViews()))
        if ((number < member.inputViews) == ofInputs) {
          numbers[n].push_back(types.size());
          types.push_back(view.getType());
        }
  SmallVector<AffineExpr> grid{getAffineConstantExpr(members.size(), context)};
  llvm::append_range(grid, first.getGrid().getResults());
  SmallVector<tile::Order> order{tile::Order::parallel};
  for (unsigned dim = 0; dim < first.getGridRank(); ++dim)
    order.push_back(first.getOrderOf(dim));
  OpBuilder builder = OpBuilder::atBlockEnd(first->getBlock());
  auto merged = tile::ProgramOp::create(
      builder, first.getLoc(), "merged",
      AffineMap::get(0, tile::ProgramOp::kNumSymbols, grid, context), order,
      types);
  for (const Member &member : members)
    if (Attribute caution =
            member.program->getAttr(tile::TileDialect::kCautionAttr))
      merged->setAttr(tile::TileDialect::kCautionAttr, caution);
  builder.setInsertionPointToStart(&merged.getBlock());
  for (unsigned n = 0; n < members.size(); ++n)
    emitPoint(builder, merged, n, numbers[n]);
  tile::ReturnOp::create(builder, first.getLoc());
  return programs.add(merged, first.getSymName().rsplit('_').first);
}

/// What reads a result before the merged launch moves behind it.
void Merge::moveReadersBehind(Operation *merged) {
  llvm::SmallPtrSet<Operation *, 32> waiting;
  for (const Member &member : members)
    waiting.insert(member.dispatch);
  Operation *last = merged;
  for (Operation *op = members.front().dispatch; op != merged;) {
    Operation *next = op->getNextNode();
    bool isReader = op->walk([&](Operation *inner) {
                        for (Value operand : inner->getOperands())
                          if (waiting.contains(operand.getDefiningOp()))
                            return WalkResult::interrupt();
                        return WalkResult::advance();
                      }).wasInterrupted();
    if (isReader) {
      op->moveAfter(last);
      last = op;
      waiting.insert(op);
    }
    op = next;
  }
}

void Merge::run() {
  tile::ProgramOp program = makeProgram();
  SmallVector<Value> inputs;
  SmallVector<Type> types;
  SmallVector<int64_t> ties;
  for (const Member &member : members) {
    DispatchOp dispatch = member.dispatch;
    if (auto tied = dispatch.getTies())
      for (auto [n, number] : llvm::enumerate(*tied))
        ties.push_back(number + (n % 2 == 0 ? types.size() : inputs.size()));
    llvm::append_range(inputs, dispatch.getInputs());
    llvm::append_range(types, dispatch->getResultTypes());
  }
  DispatchOp last = members.back().dispatch;
  OpBuilder builder(last);
  auto merged = DispatchOp::create(
      builder, members.front().dispatch.getLoc(), types,
      FlatSymbolRefAttr::get(program.getSymNameAttr()), inputs,
      ties.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(ties),
      PlainProductAttr());
  moveReadersBehind(merged);
  unsigned result = 0;
  for (Member member : members)
    for (Value old : member.dispatch->getResults())
      old.replaceAllUsesWith(merged->getResult(result++));
  for (Member member : members)
    member.dispatch->erase();
}

/// The launches behind `first` that can be merged with it.
static SmallVector<Member> membersFrom(DispatchOp first) {
  SmallVector<Member> members;
  std::optional<Member> leader = memberOf(first);
  if (!leader)
    return members;
  members.push_back(*leader);
  for (Operation *op = first->getNextNode();
       op && members.size() < kMostLaunches; op = op->getNextNode()) {
    auto dispatch = dyn_cast<DispatchOp>(op);
    std::optional<Member> next = dispatch ? memberOf(dispatch) : std::nullopt;
    if (next && haveOneGrid(leader->program, next->program) &&
        !needs(dispatch, members) && !isOverwritten(dispatch, members))
      members.push_back(*next);
  }
  return members;
}

static unsigned mergeIn(Block &block, ProgramTable &programs) {
  unsigned gone = 0;
  for (Operation &op : block)
    if (auto choice = dyn_cast<AlternativesOp>(op))
      for (Region &algorithm : choice.getAlgorithms())
        gone += mergeIn(algorithm.front(), programs);
  for (Operation *op = &block.front(); op;) {
    Operation *next = op->getNextNode();
    if (auto dispatch = dyn_cast<DispatchOp>(op)) {
      SmallVector<Member> members = membersFrom(dispatch);
      if (members.size() > 1) {
        gone += members.size() - 1;
        // Of the operations behind, members are erased and readers move.
        Operation *before = op->getPrevNode();
        Merge(programs, members).run();
        next = before ? before->getNextNode() : &block.front();
      }
    }
    op = next;
  }
  return gone;
}

unsigned hybrid::mergeLaunches(func::FuncOp function, ProgramTable &programs) {
  return mergeIn(function.getBody().front(), programs);
}

void hybrid::eraseUnlaunched(ModuleOp module) {
  llvm::DenseSet<StringRef> launched;
  module.walk(
      [&](DispatchOp dispatch) { launched.insert(dispatch.getProgram()); });
  for (auto record :
       llvm::make_early_inc_range(module.getOps<tile::ScheduleOp>()))
    if (!launched.contains(record.getProgram()))
      record.erase();
  for (auto program :
       llvm::make_early_inc_range(module.getOps<tile::ProgramOp>()))
    if (!launched.contains(program.getSymName()))
      program.erase();
}
