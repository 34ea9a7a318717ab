//===- BuildPlan.cpp - the launch list of every entry -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every dispatch becomes a launch, in order, once its values have their places
// (Places.cpp). Then a buffer's lifetime is known, and whether an input is read
// after the launch that overwrites it.
//
//===----------------------------------------------------------------------===//

#include "Places.h"
#include "hybrid/Hybrid/GraphShapes.h"
#include "hybrid/Hybrid/HybridOps.h"
#include "hybrid/Hybrid/ModelPlace.h"
#include "hybrid/Plan/Plan.h"
#include "hybrid/Tile/TileOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IntegerSet.h"

using namespace mlir;
using namespace hybrid;

namespace {

class EntryPlanner {
public:
  EntryPlanner(func::FuncOp function, PlanEntry &entry,
               const llvm::StringMap<unsigned> &kernels)
      : function(function), entry(entry), kernels(kernels) {}

  LogicalResult run();

private:
  LogicalResult addLaunches(Block &block, ArrayRef<PlanConstraint> guard);
  LogicalResult addAlternatives(AlternativesOp op,
                                ArrayRef<PlanConstraint> guard);
  LogicalResult addPieces(PiecesOp op);
  FailureOr<PlanAlternative> makeAlternative(DispatchOp op);
  std::optional<PlanProduct> makeProduct(DispatchOp op);
  void addLaunch(DispatchOp op, SmallVector<PlanAlternative, 1> alternatives);
  void assignLifetimes();
  LogicalResult checkTie(DispatchOp dispatch, unsigned input);
  LogicalResult checkTies();

  func::FuncOp function;
  PlanEntry &entry;
  const llvm::StringMap<unsigned> &kernels;
  Places places;
  DenseMap<Operation *, unsigned> launchOf;
};

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

FailureOr<PlanAlternative> EntryPlanner::makeAlternative(DispatchOp op) {
  PlanAlternative alternative;
  alternative.dispatch = op;
  alternative.kernel = kernels.at(op.getProgram());
  for (Value input : op.getInputs()) {
    if (auto it = places.segments.find(input); it != places.segments.end()) {
      alternative.views.push_back(it->second.first);
      alternative.views.push_back(it->second.second);
      continue;
    }
    alternative.views.push_back(places.values.at(input));
  }
  for (OpResult result : op->getResults())
    if (!op.getTiedInput(result.getResultNumber()))
      alternative.views.push_back(places.values.at(result));
  alternative.product = makeProduct(op);

  auto program = SymbolTable::lookupNearestSymbolFrom<tile::ProgramOp>(
      op, op.getProgramAttr());
  if (program.getViews().size() != alternative.views.size())
    return op.emitOpError("gives ")
           << alternative.views.size() << " views to program "
           << op.getProgramAttr() << ", which takes "
           << program.getViews().size();
  for (auto [number, argument, view] :
       llvm::enumerate(program.getViews(), alternative.views)) {
    auto type = cast<tile::ViewType>(argument.getType());
    bool fits = entry.buffers[view.buffer].type == type.getElementType() &&
                static_cast<size_t>(type.getRank()) == view.layout.sizes.size();
    for (int64_t dim = 0; fits && dim < type.getRank(); ++dim) {
      auto agrees = [](int64_t known, AffineExpr given) {
        auto constant = dyn_cast<AffineConstantExpr>(given);
        return ShapedType::isDynamic(known) ||
               (constant && constant.getValue() == known);
      };
      fits = agrees(type.getShape()[dim], view.layout.sizes[dim]) &&
             agrees(type.getStrides()[dim], view.layout.strides[dim]);
    }
    if (!fits)
      return op.emitOpError("view ")
             << number << " of buffer '" << entry.buffers[view.buffer].name
             << "' does not fit the program's argument of type " << type;
  }
  return alternative;
}

/// The result is the last view, tied or not. Parts count when nothing stands
/// between the launches.
std::optional<PlanProduct> EntryPlanner::makeProduct(DispatchOp op) {
  PlainProductAttr marked = op.getProductAttr();
  if (!marked)
    return std::nullopt;
  PlanProduct product;
  product.c = op.getInputs().size() - (op.getTiedInput(0) ? 1 : 0);
  product.transposeA = marked.getTransposeA();
  product.transposeB = marked.getTransposeB();
  product.accumulate = op.getTiedInput(0).has_value();
  product.parts = marked.getParts();
  if (product.parts) {
    auto front = launchOf.find(op.getFactors());
    if (front == launchOf.end() || front->second + 1 != entry.launches.size() ||
        entry.launches.back().alternatives.size() != 1)
      return std::nullopt;
  }
  return product;
}

void EntryPlanner::addLaunch(DispatchOp op,
                             SmallVector<PlanAlternative, 1> alternatives) {
  PlanLaunch launch;
  ModelPlace place = getModelPlace(op.getLoc());
  launch.layer = place.layer;
  launch.op = place.part.str();
  launch.alternatives = std::move(alternatives);
  entry.launches.push_back(std::move(launch));
}

/// The one constraint of a guard, as `expression >= 0`.
static PlanConstraint constraintOf(Attribute guard) {
  return cast<IntegerSetAttr>(guard).getValue().getConstraint(0);
}

LogicalResult EntryPlanner::addAlternatives(AlternativesOp op,
                                            ArrayRef<PlanConstraint> guard) {
  auto isLaunch = [](Operation &nested) {
    return isa<DispatchOp, AlternativesOp>(nested);
  };
  bool single = llvm::all_of(op.getAlgorithms(), [&](Region &region) {
    return llvm::count_if(region.front(), isLaunch) == 1 &&
           !region.front().getOps<DispatchOp>().empty();
  });
  // One launch each: the runtime takes the first whose guard holds.
  if (single) {
    SmallVector<PlanAlternative, 1> choices;
    DispatchOp last;
    for (auto [index, region] : llvm::enumerate(op.getAlgorithms())) {
      last = *region.front().getOps<DispatchOp>().begin();
      FailureOr<PlanAlternative> choice = makeAlternative(last);
      if (failed(choice))
        return failure();
      choice->guard.append(guard.begin(), guard.end());
      if (index < op.getGuards().size())
        choice->guard.push_back(constraintOf(op.getGuards()[index]));
      launchOf[last] = entry.launches.size();
      choices.push_back(std::move(*choice));
    }
    addLaunch(last, std::move(choices));
    return success();
  }
  // Else every launch says for itself that no earlier guard holds: e >= 0 fails
  // where -e - 1 >= 0.
  SmallVector<PlanConstraint> path(guard);
  for (auto [index, region] : llvm::enumerate(op.getAlgorithms())) {
    if (index < op.getGuards().size())
      path.push_back(constraintOf(op.getGuards()[index]));
    if (failed(addLaunches(region.front(), path)))
      return failure();
    if (index < op.getGuards().size())
      path.back() = simplifyAffineExpr(-path.back() - 1, 0, numCallSymbols);
  }
  return success();
}

LogicalResult EntryPlanner::addPieces(PiecesOp op) {
  PlanPieces pieces;
  pieces.rows = op.getRows();
  pieces.first = entry.launches.size();
  if (failed(addLaunches(op.getBlock(), {})))
    return failure();
  if (entry.launches.size() == pieces.first)
    return op.emitOpError("has no launches; remove it");
  pieces.last = entry.launches.size() - 1;
  entry.pieces.push_back(pieces);
  return success();
}

LogicalResult EntryPlanner::addLaunches(Block &block,
                                        ArrayRef<PlanConstraint> guard) {
  for (Operation &op : block) {
    if (auto alternatives = dyn_cast<AlternativesOp>(op)) {
      if (failed(addAlternatives(alternatives, guard)))
        return failure();
    } else if (auto pieces = dyn_cast<PiecesOp>(op)) {
      if (failed(addPieces(pieces)))
        return failure();
    } else if (auto dispatch = dyn_cast<DispatchOp>(op)) {
      FailureOr<PlanAlternative> alternative = makeAlternative(dispatch);
      if (failed(alternative))
        return failure();
      alternative->guard.append(guard.begin(), guard.end());
      launchOf[dispatch] = entry.launches.size();
      addLaunch(dispatch, {std::move(*alternative)});
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Lifetimes
//===----------------------------------------------------------------------===//

/// What a piece makes for itself lives in that piece; anything else that is
/// seen in one is seen in all of them, so it lives from the first one's first
/// launch to the last one's last.
void EntryPlanner::assignLifetimes() {
  std::vector<bool> used(entry.buffers.size());
  for (auto [index, launch] : llvm::enumerate(entry.launches)) {
    const PlanPieces *pieces = entry.piecesOf(index);
    auto see = [&, index = index](const PlanView &view) {
      PlanBuffer &buffer = entry.buffers[view.buffer];
      bool whole = pieces && !buffer.pieces;
      if (!used[view.buffer])
        buffer.first = whole ? pieces->first : index;
      buffer.last = whole ? pieces->last : index;
      used[view.buffer] = true;
    };
    for (const PlanAlternative &alternative : launch.alternatives) {
      llvm::for_each(alternative.views, see);
      // The factors, should the product be computed here as a whole.
      if (alternative.product && alternative.product->parts) {
        ArrayRef<PlanView> front =
            entry.launches[index - 1].alternatives.front().views;
        see(front[alternative.product->a]);
        see(front[alternative.product->b]);
      }
    }
  }
}

/// Whether two ops stand in different algorithms of one `alternatives`, so that
/// only one of them runs.
static bool areExclusive(Operation *a, Operation *b) {
  for (auto outer = a->getParentOfType<AlternativesOp>(); outer;
       outer = outer->getParentOfType<AlternativesOp>())
    for (Region &region : outer.getAlgorithms())
      if (region.isAncestor(a->getParentRegion()) && outer->isAncestor(b) &&
          !region.isAncestor(b->getParentRegion()))
        return true;
  return false;
}

static Value rootOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<ReshapeOp, SliceOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

static void collectReaders(Value value, SmallVectorImpl<Operation *> &readers) {
  for (Operation *user : value.getUsers()) {
    if (isa<ReshapeOp, SliceOp, ConcatOp>(user))
      collectReaders(user->getResult(0), readers);
    else
      readers.push_back(user);
  }
}

LogicalResult EntryPlanner::checkTie(DispatchOp dispatch, unsigned input) {
  unsigned launch = launchOf.at(dispatch);
  SmallVector<Operation *> readers;
  collectReaders(rootOf(dispatch.getInputs()[input]), readers);
  for (Operation *reader : readers) {
    auto it = launchOf.find(reader);
    if (it == launchOf.end() || it->second <= launch ||
        areExclusive(dispatch, reader))
      continue;
    InFlightDiagnostic error =
        dispatch.emitOpError("overwrites input ")
        << input << " in place, but it is read later; a copy must be scheduled";
    error.attachNote(reader->getLoc()) << "read here";
    return error;
  }
  return success();
}

LogicalResult EntryPlanner::checkTies() {
  WalkResult result = function.walk([&](DispatchOp dispatch) {
    for (unsigned result = 0; result < dispatch->getNumResults(); ++result)
      if (std::optional<unsigned> tied = dispatch.getTiedInput(result))
        if (failed(checkTie(dispatch, *tied)))
          return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult EntryPlanner::run() {
  FailureOr<Places> assigned = assignPlaces(function, entry);
  if (failed(assigned))
    return failure();
  places = std::move(*assigned);
  if (failed(addLaunches(function.getBody().front(), {})) ||
      failed(checkTies()))
    return failure();
  assignLifetimes();
  return success();
}

} // namespace

const PlanPieces *PlanEntry::piecesOf(unsigned launch) const {
  for (const PlanPieces &group : pieces)
    if (group.first <= launch && launch <= group.last)
      return &group;
  return nullptr;
}

FailureOr<Plan> hybrid::buildPlan(ModuleOp module) {
  Plan plan;
  llvm::StringMap<unsigned> kernels;
  for (auto program : module.getOps<tile::ProgramOp>()) {
    PlanKernel kernel;
    kernel.symbol = program.getSymName().str();
    kernel.name = kernel.symbol;
    if (auto caution =
            program->getAttrOfType<StringAttr>(tile::TileDialect::kCautionAttr))
      kernel.caution = caution.str();
    llvm::append_range(kernel.grid, program.getGrid().getResults());
    for (unsigned dim = 0; dim < program.getGridRank(); ++dim)
      kernel.parallel.push_back(program.getOrderOf(dim) ==
                                tile::Order::parallel);
    kernels[kernel.symbol] = plan.kernels.size();
    plan.kernels.push_back(std::move(kernel));
  }
  for (auto function : module.getOps<func::FuncOp>()) {
    auto name = function->getAttrOfType<StringAttr>("hybrid.entry");
    if (!name)
      continue;
    PlanEntry entry;
    entry.name = name.str();
    if (failed(EntryPlanner(function, entry, kernels).run()))
      return failure();
    plan.entries.push_back(std::move(entry));
  }
  return plan;
}
