//===- Places.cpp - where each value of an entry lives -*- C++ -*-===//
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

#include "Places.h"

#include "hybrid/Hybrid/HybridOps.h"
#include "hybrid/Hybrid/ModelPlace.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace hybrid;

/// The place in the model that graph ops carry as their location, in full.
static std::string nameOf(Location loc) {
  ModelPlace place = getModelPlace(loc);
  std::string part = place.part.str();
  return place.layer < 0 ? part
                         : "layers." + std::to_string(place.layer) + "." + part;
}

namespace {

class PlaceAssigner {
public:
  PlaceAssigner(func::FuncOp function, PlanEntry &entry)
      : function(function), entry(entry) {}

  FailureOr<Places> run();

private:
  // Buffers.
  unsigned addBuffer(BufferKind kind, StringRef name, RankedTensorType type,
                     StringRef path = {});
  LogicalResult checkNamed(BufferKind kind, RankedTensorType type,
                           StringRef name);
  LogicalResult bindArguments();
  LogicalResult bindResults();

  // Places.
  LogicalResult demand(Value value, const Place &place, Operation *why);
  Place placeOrNew(Value value);
  LogicalResult assignBackwards(Block &block);
  LogicalResult assignBackwards(Operation *op);
  LogicalResult assignPieces(PiecesOp op);
  LogicalResult derivePieces(PiecesOp op);
  Place placeOfCopy(CastOp cast);
  LogicalResult deriveForwards(Block &block);

  func::FuncOp function;
  PlanEntry &entry;
  Places places;
  /// In the order of their launches.
  SmallVector<PiecesOp> allPieces;
};

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

unsigned PlaceAssigner::addBuffer(BufferKind kind, StringRef name,
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
      .Case("tokens_by_id", BufferKind::TokensById)
      .Case("labels", BufferKind::Labels)
      .Case("weights", BufferKind::Weights)
      .Case("param", BufferKind::Param)
      .Case("param_copy", BufferKind::ParamCopy)
      .Case("gradient", BufferKind::Gradient)
      .Case("state", BufferKind::State)
      .Case("moment1", BufferKind::Moment1)
      .Case("moment2", BufferKind::Moment2)
      .Case("scalars", BufferKind::Scalars)
      .Case("random_key", BufferKind::RandomKey)
      .Case("loss", BufferKind::Loss)
      .Case("logits", BufferKind::Logits)
      .Case("input", BufferKind::Input)
      // What backward wants back is an output like others to the caller.
      .Cases({"output", "saved"}, BufferKind::Output)
      .Default(std::nullopt);
}

/// The caller finds an input or output by its name.
LogicalResult PlaceAssigner::checkNamed(BufferKind kind, RankedTensorType type,
                                        StringRef name) {
  if (kind != BufferKind::Input && kind != BufferKind::Output)
    return success();
  StringRef role = stringifyBufferKind(kind);
  Type element = type.getElementType();
  if (!element.isF32() && !element.isBF16() && !element.isF16() &&
      !element.isInteger(32))
    return function.emitError(role)
           << " '" << name << "' of entry '" << entry.name
           << "' has elements of type " << element
           << ", expected f32, bf16, f16 or i32";
  if (name.empty())
    return function.emitError("an ")
           << role << " of entry '" << entry.name
           << "' has no name; give it one in hybrid.path";
  for (const PlanBuffer &other : entry.buffers)
    if ((other.kind == BufferKind::Input || other.kind == BufferKind::Output) &&
        other.path == name)
      return function.emitError("an ")
             << role << " and an " << stringifyBufferKind(other.kind)
             << " of entry '" << entry.name << "' have the name '" << name
             << "'; give each its own in hybrid.path";
  return success();
}

LogicalResult PlaceAssigner::bindArguments() {
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
      places.segments[arg] = {
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
    if (failed(checkNamed(*kind, type, pathText)))
      return failure();
    places.values[arg] = {addBuffer(*kind, name, type, pathText),
                          Layout::contiguous(type)};
  }
  return success();
}

/// Results that a caller reads: a tied state or gradient goes to the buffer of
/// the argument with its path, anything else gets a buffer of its kind.
LogicalResult PlaceAssigner::bindResults() {
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
    if (failed(checkNamed(*kind, type, pathText)))
      return failure();
    std::optional<unsigned> buffer;
    for (auto [number, other] : llvm::enumerate(entry.buffers))
      if (other.kind == *kind && other.path == pathText)
        buffer = number;
    if (!buffer)
      buffer = addBuffer(
          *kind,
          *kind == BufferKind::Output ? pathText : stringifyBufferKind(*kind),
          type, pathText);
    if (failed(demand(operand.get(), {*buffer, Layout::contiguous(type)},
                      terminator)))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

LogicalResult PlaceAssigner::demand(Value value, const Place &place,
                                    Operation *why) {
  auto [it, isNew] = places.values.try_emplace(value, place);
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

/// The pieces that make a value for themselves, or null.
static PiecesOp piecesAround(Value value) {
  Operation *op = value.getParentBlock()->getParentOp();
  auto pieces = dyn_cast<PiecesOp>(op);
  return pieces ? pieces : op->getParentOfType<PiecesOp>();
}

Place PlaceAssigner::placeOrNew(Value value) {
  auto it = places.values.find(value);
  if (it != places.values.end())
    return it->second;
  auto type = cast<RankedTensorType>(value.getType());
  auto pieces = value.getDefiningOp<PiecesOp>();
  std::string name =
      nameOf(pieces ? pieces.getYielded(cast<OpResult>(value)).getLoc()
                    : value.getLoc());
  if (name.empty() && value.getDefiningOp())
    name = value.getDefiningOp()->getName().stripDialect().str();
  Place place{addBuffer(BufferKind::Arena, name, type),
              Layout::contiguous(type)};
  if (PiecesOp around = piecesAround(value))
    entry.buffers[place.buffer].pieces =
        llvm::find(allPieces, around) - allPieces.begin();
  places.values[value] = place;
  return place;
}

/// The rows of a piece in the place of the whole stream, where the symbol of
/// the tokens is the number of rows from now on: it must not say where rows
/// lie.
static Place placeOfRows(const Place &whole) {
  assert(isa<AffineConstantExpr>(whole.layout.strides[0]) &&
         "rows of one static size");
  Place place = whole;
  AffineExpr row = getAffineDimExpr(0, whole.layout.offset.getContext());
  place.layout.offset = whole.layout.offset + row * whole.layout.strides[0];
  return place;
}

/// Results are made piece by piece where they are wanted, and a sum is added to
/// where it is.
LogicalResult PlaceAssigner::assignPieces(PiecesOp op) {
  Block &body = op.getBlock();
  Operation *yield = body.getTerminator();
  for (OpResult result : op->getResults()) {
    Place place = placeOrNew(result);
    if (failed(demand(op.getYielded(result),
                      op.isSum(result) ? place : placeOfRows(place), yield)))
      return failure();
  }
  if (failed(assignBackwards(body)))
    return failure();
  for (auto [index, sum] : llvm::enumerate(op.getSums())) {
    BlockArgument argument = body.getArgument(op.getStreams().size() + index);
    OpResult result =
        op->getResult(op->getNumResults() - op.getSums().size() + index);
    Place place = places.values.at(result);
    if (failed(demand(argument, place, op)) || failed(demand(sum, place, op)))
      return failure();
  }
  return success();
}

LogicalResult PlaceAssigner::assignBackwards(Operation *op) {
  if (auto pieces = dyn_cast<PiecesOp>(op))
    return assignPieces(pieces);
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
      auto it = places.values.find(result);
      Place place = it != places.values.end() ? it->second : placeOrNew(input);
      if (failed(demand(input, place, op)))
        return failure();
      places.values[result] = place;
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
        if (Place place = places.values.at(result);
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
    auto it = places.values.find(reshape.getResult());
    if (it == places.values.end() || places.values.count(reshape.getX()))
      return success();
    auto type = cast<RankedTensorType>(reshape.getX().getType());
    if (std::optional<Layout> layout = it->second.layout.reshaped(type)) {
      Place place{it->second.buffer, *layout};
      places.values[reshape.getX()] = place;
    }
    return success();
  }
  if (isa<SliceOp>(op) || op->hasTrait<OpTrait::IsTerminator>())
    return success();
  if (auto cast = dyn_cast<CastOp>(op); cast && cast.isParameterCopy())
    return success();
  return op->emitOpError(
      "is not scheduled; phase 'schedule' must leave launches "
      "and views alone");
}

LogicalResult PlaceAssigner::assignBackwards(Block &block) {
  for (Operation &op : llvm::reverse(block))
    if (failed(assignBackwards(&op)))
      return failure();
  return success();
}

/// Gives reshapes and slices the view of what they read, and checks that a view
/// with a purpose of its own is that view.
/// The part of the buffer of copies that belongs to a parameter.
Place PlaceAssigner::placeOfCopy(CastOp cast) {
  const std::string path =
      entry.buffers[places.values.at(cast.getX()).buffer].path;
  RankedTensorType type = cast.getResult().getType();
  for (auto [index, buffer] : llvm::enumerate(entry.buffers))
    if (buffer.kind == BufferKind::ParamCopy && buffer.path == path)
      return {static_cast<unsigned>(index), Layout::contiguous(type)};
  return {addBuffer(BufferKind::ParamCopy, path, type, path),
          Layout::contiguous(type)};
}

/// A stream has its place by now.
LogicalResult PlaceAssigner::derivePieces(PiecesOp op) {
  for (auto [stream, argument] :
       llvm::zip(op.getStreams(), op.getBlock().getArguments())) {
    Place rows = placeOfRows(places.values.at(stream));
    if (failed(demand(argument, rows, op)))
      return failure();
  }
  return success();
}

LogicalResult PlaceAssigner::deriveForwards(Block &block) {
  for (Operation &op : block) {
    if (auto pieces = dyn_cast<PiecesOp>(op);
        pieces && failed(derivePieces(pieces)))
      return failure();
    for (Region &region : op.getRegions())
      for (Block &nested : region)
        if (failed(deriveForwards(nested)))
          return failure();
    std::optional<Place> place;
    if (auto reshape = dyn_cast<ReshapeOp>(op)) {
      Place source = places.values.at(reshape.getX());
      auto type = cast<RankedTensorType>(reshape.getType());
      std::optional<Layout> layout = source.layout.reshaped(type);
      if (!layout)
        return op.emitOpError("of ")
               << reshape.getX().getType() << " to " << type
               << " needs a copy, because its rows lie apart; one must be "
                  "scheduled";
      place = {source.buffer, *layout};
    } else if (auto cast = dyn_cast<CastOp>(op)) {
      place = placeOfCopy(cast);
    } else if (auto slice = dyn_cast<SliceOp>(op)) {
      Place source = places.values.at(slice.getX());
      place = {source.buffer,
               source.layout.sliced(slice.getDim(), slice.getOffset(),
                                    slice.getSize())};
    }
    if (place && failed(demand(op.getResult(0), *place, &op)))
      return failure();
  }
  return success();
}

FailureOr<Places> PlaceAssigner::run() {
  Block &body = function.getBody().front();
  llvm::append_range(allPieces, body.getOps<PiecesOp>());
  if (failed(bindArguments()) || failed(bindResults()) ||
      failed(assignBackwards(body)) || failed(deriveForwards(body)))
    return failure();
  return std::move(places);
}

} // namespace

FailureOr<Places> hybrid::assignPlaces(func::FuncOp function,
                                       PlanEntry &entry) {
  return PlaceAssigner(function, entry).run();
}
