//===- SpecOps.cpp - verifiers of the operations in SpecOps.td -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SpecSyntax.h"
#include "SpecVerify.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace hybrid;

//===----------------------------------------------------------------------===//
// Checks that several operations share
//===----------------------------------------------------------------------===//

LogicalResult hybrid::verifyComputeType(Operation *op, Type type) {
  if (type.isF32() || type.isBF16() || type.isF16())
    return success();
  return op->emitOpError() << "dtype " << type
                           << " is not one that models have; write dtype(f32), "
                              "dtype(bf16) or dtype(f16)";
}

LogicalResult hybrid::verifyCount(Operation *op, StringRef role, int64_t value,
                                  int64_t least, int64_t most) {
  if (value >= least && value <= most)
    return success();
  return op->emitOpError() << role << " is " << value
                           << "; write a number from " << least << " to "
                           << most;
}

LogicalResult hybrid::verifyChannels(Operation *op, StringRef role,
                                     int64_t value, int64_t most) {
  if (value > 0 && value <= most && value % 8 == 0)
    return success();
  return op->emitOpError() << role << " " << value
                           << " is not supported; write a multiple of 8 from 8 "
                              "to "
                           << most;
}

LogicalResult hybrid::verifyDropout(Operation *op, StringRef role,
                                    double rate) {
  if (rate >= 0.0 && rate <= kMaxDropout)
    return success();
  return op->emitOpError() << role << " is " << formatNumber(rate)
                           << "; write a number from 0 to "
                           << formatNumber(kMaxDropout) << ", such as 0.1";
}

LogicalResult hybrid::verifyHistory(Operation *op, int64_t window,
                                    int64_t stride) {
  if (failed(verifyCount(op, "window", window, 1, kMaxTokens)) ||
      failed(verifyCount(op, "stride", stride, 1, kMaxTokens)))
    return failure();
  if (window % stride == 0)
    return success();
  return op->emitOpError() << "stride " << stride << " does not divide window "
                           << window << "; write stride("
                           << std::gcd(window, stride) << ") or window("
                           << llvm::alignTo(window, stride) << ")";
}

LogicalResult hybrid::verifyOneMixer(Operation *op, Block &body) {
  if (llvm::hasSingleElement(body) &&
      isa<MixerInterface, HeadsOp, SwlaOp>(body.front()))
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError()
                                  << "holds " << body.getOperations().size()
                                  << " operations where one mixer is expected";
  if (!body.empty())
    diagnostic.attachNote(body.back().getLoc())
        << "the last is '" << body.back().getName()
        << "'; groups of heads in one layer are written with hybrid.heads";
  return failure();
}

LogicalResult hybrid::verifyOnlyClauses(Operation *op) {
  for (NamedAttribute attribute : op->getDiscardableAttrs()) {
    StringRef name = attribute.getName();
    if (!name.contains('.') && name != SymbolTable::getVisibilityAttrName())
      return op->emitOpError()
             << "has no clause '" << name
             << "', and nothing reads it as an attribute; remove it";
  }
  return success();
}

/// What leftover(error) asks of a ratio or pattern.
static LogicalResult verifyWholePeriods(Operation *op, StringRef what,
                                        int64_t period, int64_t layers,
                                        StringRef wayOut) {
  if (layers % period == 0)
    return success();
  InFlightDiagnostic diagnostic =
      op->emitOpError() << "leaves " << layers % period << " of " << layers
                        << " layers over after whole " << what << " of "
                        << period << ", and leftover(error) forbids that; "
                        << "write layers(" << llvm::alignTo(layers, period)
                        << ") or " << wayOut;
  diagnostic.attachNote(op->getParentOp()->getLoc())
      << "the model has layers(" << layers << ")";
  return failure();
}

//===----------------------------------------------------------------------===//
// ModelOp
//===----------------------------------------------------------------------===//

MlpOp ModelOp::getMlp() { return dyn_cast<MlpOp>(getBody().front().back()); }

/// One operation that assigns mixers, then at most one MLP.
static LogicalResult verifyModelBody(ModelOp model) {
  Block &body = model.getBody().front();
  auto assigns = [](Operation &op) {
    return isa<MixOp, PatternOp, LayersOp, HeadsOp, SwlaOp, MixerInterface>(op);
  };
  if (body.empty() || !assigns(body.front()))
    return model.emitOpError()
           << "starts with "
           << (body.empty() ? "nothing" : body.front().getName().getStringRef())
           << " where its mixers are expected; write a mixer, hybrid.heads, "
              "hybrid.mix, hybrid.pattern or hybrid.layers first";
  for (Operation &op : llvm::drop_begin(body)) {
    if (isa<MlpOp>(op) && &op == &*std::next(body.begin()))
      continue;
    InFlightDiagnostic diagnostic =
        op.emitOpError() << "stands where only one hybrid.mlp is expected; "
                            "give layers different mixers with hybrid.mix, "
                            "hybrid.pattern or hybrid.layers";
    diagnostic.attachNote(body.front().getLoc())
        << "the mixers of the model are given here";
    return failure();
  }
  return success();
}

/// The name stands in files, tables and terminals.
static LogicalResult verifyModelName(ModelOp model) {
  StringRef name = model.getSymName();
  auto isPlain = [](char c) {
    return llvm::isAlnum(c) || c == '_' || c == '-' || c == '.';
  };
  if (!name.empty() && llvm::all_of(name, isPlain))
    return success();
  std::string shown;
  llvm::raw_string_ostream os(shown);
  llvm::printEscapedString(name, os);
  return model.emitOpError()
         << "name '" << shown
         << "' is not supported; write letters, digits, '_', '-' and '.'";
}

LogicalResult ModelOp::verify() {
  if (failed(verifyModelName(*this)))
    return failure();
  if (failed(verifyCount(*this, "vocab", getVocab(), 1, kMaxWidth)) ||
      failed(verifyChannels(*this, "width", getWidth(), kMaxWidth)) ||
      failed(verifyCount(*this, "layers", getLayers(), 1, kMaxLayers)))
    return failure();
  if (getDtype() && failed(verifyComputeType(*this, *getDtype())))
    return failure();
  if (getTrained() &&
      failed(verifyCount(*this, "trained", *getTrained(), 2, kMaxTokens)))
    return failure();
  if (getEpsilon() && !(*getEpsilon() > 0.0 && *getEpsilon() < 1.0))
    return emitOpError() << "epsilon is " << formatNumber(*getEpsilon())
                         << "; write a number between 0 and 1, such as 1.0e-5";
  if (getInitStd() && !(*getInitStd() > 0.0 && *getInitStd() < 10.0))
    return emitOpError() << "init_std is " << formatNumber(*getInitStd())
                         << "; write a number between 0 and 10, such as 0.02";
  if (getDropout() && failed(verifyDropout(*this, "dropout", *getDropout())))
    return failure();
  return verifyModelBody(*this);
}

//===----------------------------------------------------------------------===//
// MixOp
//===----------------------------------------------------------------------===//

bool MixOp::isFull(int64_t index, int64_t layers) {
  if (getLeftover() == MixLeftover::last_full && index == layers - 1 &&
      layers % getPeriod() != 0)
    return true;
  int64_t phase = index - getOffset().value_or(getBiased());
  return llvm::mod(phase, getPeriod()) < getFull();
}

LogicalResult MixOp::verify() {
  int64_t biased = getBiased(), full = getFull();
  if (biased < 1 || full < 1 || biased > kMaxLayers || full > kMaxLayers)
    return emitOpError()
           << "ratio " << biased << " : " << full
           << " must have two numbers from 1 to " << kMaxLayers
           << "; for layers of one kind write their mixer without "
              "hybrid.mix";
  if (std::optional<int64_t> offset = getOffset())
    if (*offset < 0 || *offset >= getPeriod())
      return emitOpError() << "offset " << *offset
                           << " is outside the period of " << getPeriod()
                           << " layers that ratio " << biased << " : " << full
                           << " makes; write an offset from 0 to "
                           << getPeriod() - 1;

  Block &body = getBody().front();
  int64_t entries = body.getOperations().size();
  if (entries != 2)
    return emitOpError() << "has " << entries << " mixers where ratio "
                         << biased << " : " << full
                         << " needs 2; write the biased one, then the full one "
                            "(more kinds: hybrid.pattern)";
  for (Operation &op : body)
    if (!isa<MixerInterface, HeadsOp, SwlaOp>(op))
      return emitOpError() << "holds '" << op.getName()
                           << "' where a mixer, hybrid.heads or hybrid.swla is "
                              "expected; move it out";
  if (getLeftover() == MixLeftover::error)
    return verifyWholePeriods(*this, "periods", getPeriod(),
                              cast<ModelOp>((*this)->getParentOp()).getLayers(),
                              "leftover(biased) or leftover(last_full)");
  return success();
}

//===----------------------------------------------------------------------===//
// PatternOp, LayersOp, NamedOp
//===----------------------------------------------------------------------===//

/// The `hybrid.named` of `op` by name, or failure when one stands twice or
/// another operation is among them.
static FailureOr<llvm::StringMap<NamedOp>> collectNamed(Operation *op) {
  llvm::StringMap<NamedOp> named;
  for (Operation &entry : op->getRegion(0).front()) {
    auto namedOp = dyn_cast<NamedOp>(entry);
    if (!namedOp)
      return entry.emitOpError("stands where a hybrid.named is expected; write "
                               "hybrid.named \"...\" { } around it");
    if (isa<PatternOp>(op) && namedOp.getName().size() > 1)
      return namedOp.emitOpError() << "is called '" << namedOp.getName()
                                   << "' in a pattern, where a name is one "
                                      "letter; shorten it or list "
                                      "the layers with hybrid.layers";
    auto [it, inserted] = named.try_emplace(namedOp.getName(), namedOp);
    if (inserted)
      continue;
    InFlightDiagnostic diagnostic = namedOp.emitOpError()
                                    << "gives the name '" << namedOp.getName()
                                    << "' a second time; rename one";
    diagnostic.attachNote(it->second.getLoc()) << "the first is here";
    return failure();
  }
  return named;
}

static InFlightDiagnostic
emitUnknownName(Operation *op, StringRef what, StringRef name, int64_t index,
                const llvm::StringMap<NamedOp> &named) {
  SmallVector<StringRef> known(named.keys());
  llvm::sort(known);
  return op->emitOpError() << "has the unknown " << what << " '" << name
                           << "' at index " << index << "; the body names "
                           << (known.empty()
                                   ? "nothing"
                                   : "'" + llvm::join(known, "', '") + "'")
                           << ", so change it or add hybrid.named \"" << name
                           << "\"";
}

/// Whether every name of the body is used by `isUsed`.
template <typename IsUsed>
static LogicalResult verifyAllUsed(const llvm::StringMap<NamedOp> &named,
                                   IsUsed isUsed) {
  for (const auto &entry : named) {
    NamedOp op = entry.second;
    if (!isUsed(entry.first()))
      return op.emitOpError() << "names '" << entry.first()
                              << "', which no layer has; use it or remove it";
  }
  return success();
}

LogicalResult PatternOp::verify() {
  FailureOr<llvm::StringMap<NamedOp>> named = collectNamed(*this);
  if (failed(named))
    return failure();
  StringRef letters = getLetters();
  int64_t layers = cast<ModelOp>((*this)->getParentOp()).getLayers();
  if (letters.empty())
    return emitOpError("has no letters; write one letter per layer");
  for (auto [index, letter] : llvm::enumerate(letters))
    if (!named->contains(StringRef(&letter, 1)))
      return emitUnknownName(*this, "letter", letters.substr(index, 1), index,
                             *named);
  if (static_cast<int64_t>(letters.size()) > layers)
    return emitOpError() << "has " << letters.size()
                         << " letters for a model of " << layers
                         << " layers; shorten the pattern or write layers("
                         << letters.size() << ")";
  if (getLeftover() == PatternLeftover::error &&
      failed(verifyWholePeriods(*this, "repetitions", letters.size(), layers,
                                "leftover(cut) or leftover(last)")))
    return failure();
  return verifyAllUsed(*named,
                       [&](StringRef name) { return letters.contains(name); });
}

LogicalResult LayersOp::verify() {
  FailureOr<llvm::StringMap<NamedOp>> named = collectNamed(*this);
  if (failed(named))
    return failure();
  auto model = cast<ModelOp>((*this)->getParentOp());
  int64_t listed = getNames().size();
  if (listed != model.getLayers()) {
    InFlightDiagnostic diagnostic =
        emitOpError() << "lists " << listed << " layers where the model has "
                      << model.getLayers() << "; write one name per layer";
    diagnostic.attachNote(model.getLoc())
        << "the model has layers(" << model.getLayers() << ")";
    return failure();
  }
  llvm::StringSet<> used;
  for (auto [index, name] :
       llvm::enumerate(getNames().getAsValueRange<StringAttr>())) {
    if (!named->contains(name))
      return emitUnknownName(*this, "name", name, index, *named);
    used.insert(name);
  }
  return verifyAllUsed(*named,
                       [&](StringRef name) { return used.contains(name); });
}

LogicalResult NamedOp::verify() {
  if (getName().empty())
    return emitOpError("has an empty name; write hybrid.named \"L\"");
  return verifyOneMixer(*this, getBody().front());
}

//===----------------------------------------------------------------------===//
// MlpOp
//===----------------------------------------------------------------------===//

LogicalResult MlpOp::verify() {
  return verifyChannels(*this, "channels", getChannels(), kMaxWidth);
}

#include "hybrid/Hybrid/MixerInterfaces.cpp.inc"

#define GET_OP_CLASSES
#include "hybrid/Hybrid/SpecOps.cpp.inc"
#include "llvm/ADT/StringExtras.h"
