//===- BuildPlan.cpp - launches and buffers of every entry -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A value gets its place in two sweeps. From the last op to the first, what a
// value is for decides where it is made: in the buffer the caller reads, in the
// part of a concatenation, in the memory it overwrites, else in a buffer of the
// arena. From the first op to the last, reshapes and slices become views. Where
// two purposes ask for different places a copy would be needed; phase
// `schedule` has put one there, so here it is an error.
//
//===----------------------------------------------------------------------===//

#include "hybrid/Hybrid/GraphShapes.h"
#include "hybrid/Hybrid/HybridOps.h"
#include "hybrid/Plan/Plan.h"
#include "hybrid/Tile/TileOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IntegerSet.h"

using namespace mlir;
using namespace hybrid;

namespace {

using Place = PlanView;

/// Layer and op from the name that graph ops carry as their location.
std::pair<int64_t, std::string> placeInModel(Location loc) {
  StringRef name;
  loc->walk([&](Location nested) {
    auto named = dyn_cast<NameLoc>(nested);
    if (!named)
      return WalkResult::advance();
    name = named.getName();
    return WalkResult::interrupt();
  });
  StringRef rest = name;
  unsigned layer;
  if (rest.consume_front("layers.") && !rest.consumeInteger(10, layer) &&
      rest.consume_front("."))
    return {layer, rest.str()};
  return {-1, name.str()};
}

std::string nameOf(Location loc) {
  auto [layer, op] = placeInModel(loc);
  return layer < 0 ? op : "layers." + std::to_string(layer) + "." + op;
}

class EntryPlanner {
public:
  EntryPlanner(func::FuncOp function, PlanEntry &entry,
               const llvm::StringMap<unsigned> &kernels)
      : function(function), entry(entry), kernels(kernels) {}

  LogicalResult run();

private:
  // Buffers.
  unsigned addBuffer(BufferKind kind, StringRef name, RankedTensorType type,
                     StringRef path = {});
  LogicalResult bindArguments();
  LogicalResult bindResults();

  // Places.
  LogicalResult demand(Value value, const Place &place, Operation *why);
  Place placeOrNew(Value value);
  LogicalResult assignBackwards(Block &block);
  LogicalResult assignBackwards(Operation *op);
  LogicalResult deriveForwards(Block &block);

  // Launches.
  LogicalResult addLaunches(Block &block, ArrayRef<PlanConstraint> guard);
  LogicalResult addAlternatives(AlternativesOp op,
                                ArrayRef<PlanConstraint> guard);
  FailureOr<PlanAlternative> makeAlternative(DispatchOp op);
  void addLaunch(DispatchOp op, SmallVector<PlanAlternative, 1> alternatives);
  void assignLifetimes();
  LogicalResult checkTie(DispatchOp dispatch, unsigned input);
  LogicalResult checkTies();

  func::FuncOp function;
  PlanEntry &entry;
  const llvm::StringMap<unsigned> &kernels;
  DenseMap<Value, Place> places;
  /// The two views of a segments value: table, and segment of each token.
  DenseMap<Value, std::pair<Place, Place>> segments;
  DenseMap<Operation *, unsigned> launchOf;
};

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

unsigned EntryPlanner::addBuffer(BufferKind kind, StringRef name,
                                 RankedTensorType type, StringRef path) {
  PlanBuffer buffer;
  buffer.name = name.str();
  buffer.kind = kind;
  buffer.type = type.getElementType();
  buffer.sizes = Layout::contiguous(type).sizes;
  buffer.path = path.str();
  entry.buffers.push_back(std::move(buffer));
  return entry.buffers.size() - 1;
}

std::optional<BufferKind> kindOfRole(StringRef role) {
  return llvm::StringSwitch<std::optional<BufferKind>>(role)
      .Case("ids", BufferKind::Ids)
      .Case("labels", BufferKind::Labels)
      .Case("weights", BufferKind::Weights)
      .Case("param", BufferKind::Param)
      .Case("gradient", BufferKind::Gradient)
      .Case("state", BufferKind::State)
      .Case("moment1", BufferKind::Moment1)
      .Case("moment2", BufferKind::Moment2)
      .Case("scalars", BufferKind::Scalars)
      .Case("loss", BufferKind::Loss)
      .Case("logits", BufferKind::Logits)
      .Default(std::nullopt);
}

LogicalResult EntryPlanner::bindArguments() {
  MLIRContext *context = function.getContext();
  for (BlockArgument arg : function.getArguments()) {
    auto role = function.getArgAttrOfType<StringAttr>(arg.getArgNumber(),
                                                      "hybrid.role");
    if (!role)
      return function.emitError("argument ")
             << arg.getArgNumber() << " of entry '" << entry.name
             << "' has no hybrid.role";
    if (isa<SegmentsType>(arg.getType())) {
      Type i32 = IntegerType::get(context, 32);
      int64_t dynamic = ShapedType::kDynamic;
      auto table = RankedTensorType::get({dynamic, 4}, i32,
                                         PerSegmentAttr::get(context));
      auto tokens = RankedTensorType::get({dynamic}, i32);
      segments[arg] = {
          {addBuffer(BufferKind::SegmentTable, "segment_table", table),
           Layout::contiguous(table)},
          {addBuffer(BufferKind::TokenSegment, "token_segment", tokens),
           Layout::contiguous(tokens)}};
      continue;
    }
    std::optional<BufferKind> kind = kindOfRole(role);
    auto type = dyn_cast<RankedTensorType>(arg.getType());
    if (!kind || !type)
      return function.emitError("argument ")
             << arg.getArgNumber() << " of entry '" << entry.name
             << "' has the unknown hybrid.role " << role;
    auto path = function.getArgAttrOfType<StringAttr>(arg.getArgNumber(),
                                                      "hybrid.path");
    StringRef pathText = path ? path.getValue() : StringRef();
    StringRef name = path ? path.getValue() : role.getValue();
    places[arg] = {addBuffer(*kind, name, type, pathText),
                   Layout::contiguous(type)};
  }
  return success();
}

/// Results that a caller reads: a tied state or gradient goes to the buffer of
/// the argument with its path, anything else gets a buffer of its kind.
LogicalResult EntryPlanner::bindResults() {
  Operation *terminator = function.getBody().front().getTerminator();
  for (OpOperand &operand : terminator->getOpOperands()) {
    unsigned index = operand.getOperandNumber();
    auto type = cast<RankedTensorType>(operand.get().getType());
    auto role = function.getResultAttrOfType<StringAttr>(index, "hybrid.role");
    auto path = function.getResultAttrOfType<StringAttr>(index, "hybrid.path");
    std::optional<BufferKind> kind =
        role ? kindOfRole(role) : std::optional<BufferKind>();
    if (!kind)
      return function.emitError("result ")
             << index << " of entry '" << entry.name
             << "' has no known hybrid.role";
    StringRef pathText = path ? path.getValue() : StringRef();
    std::optional<unsigned> buffer;
    for (auto [number, other] : llvm::enumerate(entry.buffers))
      if (other.kind == *kind && other.path == pathText)
        buffer = number;
    if (!buffer)
      buffer = addBuffer(*kind, stringifyBufferKind(*kind), type, pathText);
    if (failed(demand(operand.get(), {*buffer, Layout::contiguous(type)},
                      terminator)))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

LogicalResult EntryPlanner::demand(Value value, const Place &place,
                                   Operation *why) {
  auto [it, isNew] = places.try_emplace(value, place);
  if (isNew ||
      (it->second.buffer == place.buffer && it->second.layout == place.layout))
    return success();
  InFlightDiagnostic error =
      why->emitOpError("needs ")
      << value.getType() << " in buffer '" << entry.buffers[place.buffer].name
      << "', but it is made in '" << entry.buffers[it->second.buffer].name
      << "'; a copy must be scheduled between them";
  error.attachNote(value.getLoc()) << "value is made here";
  return error;
}

Place EntryPlanner::placeOrNew(Value value) {
  auto it = places.find(value);
  if (it != places.end())
    return it->second;
  auto type = cast<RankedTensorType>(value.getType());
  std::string name = nameOf(value.getLoc());
  if (name.empty() && value.getDefiningOp())
    name = value.getDefiningOp()->getName().stripDialect().str();
  Place place{addBuffer(BufferKind::Arena, name, type),
              Layout::contiguous(type)};
  places[value] = place;
  return place;
}

LogicalResult EntryPlanner::assignBackwards(Operation *op) {
  if (auto dispatch = dyn_cast<DispatchOp>(op)) {
    for (OpResult result : dispatch->getResults()) {
      std::optional<unsigned> tied =
          dispatch.getTiedInput(result.getResultNumber());
      if (!tied) {
        placeOrNew(result);
        continue;
      }
      Value input = dispatch.getInputs()[*tied];
      // An argument has its place already; the result goes there.
      auto it = places.find(result);
      Place place = it != places.end() ? it->second : placeOrNew(input);
      if (failed(demand(input, place, op)))
        return failure();
      places[result] = place;
    }
    return success();
  }
  if (auto alternatives = dyn_cast<AlternativesOp>(op)) {
    for (OpResult result : alternatives->getResults())
      placeOrNew(result);
    for (Region &region : alternatives.getAlgorithms()) {
      Operation *yield = region.front().getTerminator();
      for (auto [value, result] :
           llvm::zip_equal(yield->getOperands(), alternatives->getResults()))
        if (Place place = places.at(result);
            failed(demand(value, place, yield)))
          return failure();
      if (failed(assignBackwards(region.front())))
        return failure();
    }
    return success();
  }
  if (auto concat = dyn_cast<ConcatOp>(op)) {
    Place whole = placeOrNew(concat.getResult());
    int64_t from = 0;
    for (Value part : concat.getParts()) {
      int64_t size =
          cast<RankedTensorType>(part.getType()).getDimSize(concat.getDim());
      Place place{whole.buffer,
                  whole.layout.sliced(concat.getDim(), from, size)};
      if (failed(demand(part, place, op)))
        return failure();
      from += size;
    }
    return success();
  }
  if (auto reshape = dyn_cast<ReshapeOp>(op)) {
    auto it = places.find(reshape.getResult());
    if (it == places.end() || places.count(reshape.getX()))
      return success();
    auto type = cast<RankedTensorType>(reshape.getX().getType());
    if (std::optional<Layout> layout = it->second.layout.reshaped(type)) {
      Place place{it->second.buffer, *layout};
      places[reshape.getX()] = place;
    }
    return success();
  }
  if (isa<SliceOp>(op) || op->hasTrait<OpTrait::IsTerminator>())
    return success();
  return op->emitOpError(
      "is not scheduled; phase 'schedule' must leave launches "
      "and views alone");
}

LogicalResult EntryPlanner::assignBackwards(Block &block) {
  for (Operation &op : llvm::reverse(block))
    if (failed(assignBackwards(&op)))
      return failure();
  return success();
}

/// Gives reshapes and slices the view of what they read, and checks that a view
/// with a purpose of its own is that view.
LogicalResult EntryPlanner::deriveForwards(Block &block) {
  for (Operation &op : block) {
    for (Region &region : op.getRegions())
      for (Block &nested : region)
        if (failed(deriveForwards(nested)))
          return failure();
    std::optional<Place> place;
    if (auto reshape = dyn_cast<ReshapeOp>(op)) {
      Place source = places.at(reshape.getX());
      auto type = cast<RankedTensorType>(reshape.getType());
      std::optional<Layout> layout = source.layout.reshaped(type);
      if (!layout)
        return op.emitOpError("of ")
               << reshape.getX().getType() << " to " << type
               << " needs a copy, because its rows lie apart; one must be "
                  "scheduled";
      place = {source.buffer, *layout};
    } else if (auto slice = dyn_cast<SliceOp>(op)) {
      Place source = places.at(slice.getX());
      place = {source.buffer,
               source.layout.sliced(slice.getDim(), slice.getOffset(),
                                    slice.getSize())};
    }
    if (place && failed(demand(op.getResult(0), *place, &op)))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

FailureOr<PlanAlternative> EntryPlanner::makeAlternative(DispatchOp op) {
  PlanAlternative alternative;
  alternative.kernel = kernels.at(op.getProgram());
  for (Value input : op.getInputs()) {
    if (auto it = segments.find(input); it != segments.end()) {
      alternative.views.push_back(it->second.first);
      alternative.views.push_back(it->second.second);
      continue;
    }
    alternative.views.push_back(places.at(input));
  }
  for (OpResult result : op->getResults())
    if (!op.getTiedInput(result.getResultNumber()))
      alternative.views.push_back(places.at(result));

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
    bool fits = static_cast<size_t>(type.getRank()) == view.layout.sizes.size();
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

void EntryPlanner::addLaunch(DispatchOp op,
                             SmallVector<PlanAlternative, 1> alternatives) {
  PlanLaunch launch;
  std::tie(launch.layer, launch.op) = placeInModel(op.getLoc());
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

LogicalResult EntryPlanner::addLaunches(Block &block,
                                        ArrayRef<PlanConstraint> guard) {
  for (Operation &op : block) {
    if (auto alternatives = dyn_cast<AlternativesOp>(op)) {
      if (failed(addAlternatives(alternatives, guard)))
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

void EntryPlanner::assignLifetimes() {
  std::vector<bool> used(entry.buffers.size());
  for (auto [index, launch] : llvm::enumerate(entry.launches))
    for (const PlanAlternative &alternative : launch.alternatives)
      for (const PlanView &view : alternative.views) {
        PlanBuffer &buffer = entry.buffers[view.buffer];
        if (!used[view.buffer])
          buffer.first = index;
        buffer.last = index;
        used[view.buffer] = true;
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
  Block &body = function.getBody().front();
  if (failed(bindArguments()) || failed(bindResults()) ||
      failed(assignBackwards(body)) || failed(deriveForwards(body)) ||
      failed(addLaunches(body, {})) || failed(checkTies()))
    return failure();
  assignLifetimes();
  return success();
}

} // namespace

FailureOr<Plan> hybrid::buildPlan(ModuleOp module) {
  Plan plan;
  llvm::StringMap<unsigned> kernels;
  for (auto program : module.getOps<tile::ProgramOp>()) {
    PlanKernel kernel;
    kernel.symbol = program.getSymName().str();
    kernel.name = kernel.symbol;
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
