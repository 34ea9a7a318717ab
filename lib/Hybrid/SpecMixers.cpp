//===- SpecMixers.cpp - verifiers of mixers and what holds them ----------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SpecVerify.h"
#include "hybrid/Hybrid/NumberText.h"

using namespace mlir;
using namespace hybrid;

//===----------------------------------------------------------------------===//
// HeadsOp, SwlaOp
//===----------------------------------------------------------------------===//

/// The mixer that a group of a layer comes down to, or null.
static MixerInterface getGroupMixer(Operation &op) {
  if (auto swla = dyn_cast<SwlaOp>(op)) {
    Block &body = swla.getBody().front();
    return body.empty() ? MixerInterface()
                        : dyn_cast<MixerInterface>(body.front());
  }
  return dyn_cast<MixerInterface>(op);
}

LogicalResult HeadsOp::verify() {
  Block &body = getBody().front();
  int64_t groups = body.getOperations().size();
  if (groups < 2)
    return emitOpError() << "has " << groups
                         << " groups where two are the least; write one mixer "
                            "without hybrid.heads";
  int64_t sum = 0;
  for (Operation &op : body) {
    MixerInterface mixer = getGroupMixer(op);
    if (!mixer)
      return op.emitOpError(
          "is no group of heads; write a mixer or hybrid.swla "
          "in hybrid.heads");
    sum += mixer.getHeads();
  }
  if (getTotal() && *getTotal() != sum)
    return emitOpError() << "groups have " << sum << " heads together, unlike "
                         << "total(" << *getTotal()
                         << "); change a group or write total(" << sum << ")";
  return success();
}

LogicalResult SwlaOp::verify() {
  if (failed(verifyHistory(*this, getWindow(), getStride())))
    return failure();
  Block &body = getBody().front();
  if (llvm::hasSingleElement(body) &&
      isa<RecurrentMixerInterface>(body.front()))
    return success();
  InFlightDiagnostic diagnostic = emitOpError() << "holds ";
  if (llvm::hasSingleElement(body))
    diagnostic << "'" << body.front().getName() << "'";
  else
    diagnostic << body.getOperations().size() << " operations";
  diagnostic << " where one recurrence is expected";
  for (Operation &op : body)
    if (isa<SoftmaxOp>(op))
      diagnostic.attachNote(op.getLoc())
          << "softmax attention has a window of its own; write window("
          << getWindow() << ") on it";
  return failure();
}

//===----------------------------------------------------------------------===//
// Mixers
//===----------------------------------------------------------------------===//

static LogicalResult verifyPosition(SoftmaxOp op) {
  if (op.getPosition() == PositionKind::nope) {
    if (op.getRopeBase() || op.getDynamicNtk())
      return op.emitOpError("has position nope with an argument of rope; write "
                            "position(nope) or position(rope, ...)");
    return success();
  }
  if (std::optional<double> base = op.getRopeBase(); base && !(*base > 1.0))
    return op.emitOpError()
           << "rotary base is " << formatNumber(*op.getRopeBase())
           << "; write a base above 1, such as 10000";
  if (std::optional<double> factor = op.getDynamicNtk()) {
    if (!(*factor >= 1.0 && *factor <= kMaxNumber))
      return op.emitOpError()
             << "dynamic_ntk is " << formatNumber(*op.getDynamicNtk())
             << "; write a factor from 1 to " << formatNumber(kMaxNumber);
    auto model = op->getParentOfType<ModelOp>();
    if (model && !model.getTrained())
      return (op.emitOpError() << "uses dynamic_ntk " << formatNumber(*factor)
                               << " but no trained length is known; write "
                                  "trained(n) on the model")
                 .attachNote(model.getLoc())
             << "the model is here";
  }
  return success();
}

static LogicalResult verifyLogitScale(SoftmaxOp op) {
  if (!op.getLogitScale())
    return success();
  if (op.getLogitScale() == LogitScaleKind::constant) {
    if (!op.getLogitFactor())
      return op.emitOpError("has a constant logit scale without its factor; "
                            "write logit_scale(constant, factor = x)");
    if (*op.getLogitFactor() > 0.0 && *op.getLogitFactor() <= kMaxNumber)
      return success();
    return op.emitOpError()
           << "logit scale is " << formatNumber(*op.getLogitFactor())
           << "; write a factor above 0, at most " << formatNumber(kMaxNumber);
  }
  if (std::optional<int64_t> trained = op.getLogitTrained())
    return verifyCount(op, "trained length of log_n", *trained, 2, kMaxTokens);
  auto model = op->getParentOfType<ModelOp>();
  if (!model || model.getTrained())
    return success();
  return (op.emitOpError(
              "has logit_scale(log_n) but no trained length is known; "
              "write logit_scale(log_n, trained = n) or trained(n) on "
              "the model"))
             .attachNote(model.getLoc())
         << "the model is here";
}

LogicalResult SoftmaxOp::verify() {
  if (failed(verifyCount(*this, "heads", getHeads(), 1, kMaxHeads)) ||
      failed(verifyChannels(*this, "head_dim", getHeadDim(), kMaxHeadDim)))
    return failure();
  if (std::optional<int64_t> kvHeads = getKvHeads())
    if (*kvHeads < 1 || getHeads() % *kvHeads != 0)
      return emitOpError() << "kv_heads " << *kvHeads
                           << " does not divide heads " << getHeads()
                           << "; each key head serves an equal number of query "
                              "heads, so write a divisor of "
                           << getHeads();
  if (getWindow() && (*getWindow() < 1 || *getWindow() > kMaxTokens))
    return emitOpError() << "window is " << *getWindow()
                         << ", and a window counts the token itself; write a "
                            "number from 1 to "
                         << kMaxTokens << ", or leave it out for all tokens";
  if (std::optional<int64_t> sinks = getSinks()) {
    if (failed(verifyCount(*this, "sinks", *sinks, 1, kMaxTokens)))
      return failure();
    if (!getWindow())
      return emitOpError() << "sinks(" << *sinks
                           << ") without a window changes nothing, all tokens "
                              "are seen; add window(n) or remove it";
  }
  if (failed(verifyPosition(*this)))
    return failure();
  return verifyLogitScale(*this);
}

LogicalResult hybrid::verifyRecurrentMixer(Operation *operation) {
  auto op = cast<RecurrentMixerInterface>(operation);
  if (failed(verifyCount(op, "heads", op.getHeads(), 1, kMaxHeads)) ||
      failed(verifyChannels(op, "head_dim", op.getHeadDim(), kMaxHeadDim)))
    return failure();
  if (op.getValueDim() &&
      failed(verifyChannels(op, "value_dim", *op.getValueDim(), kMaxValueDim)))
    return failure();
  if (op.getConv() && *op.getConv() != 0 &&
      failed(verifyCount(op, "convolution width", *op.getConv(), 2, kMaxConv)))
    return failure();
  if (std::optional<double> bias = op.getGateBias();
      bias && !(std::abs(*bias) <= kMaxNumber))
    return op->emitOpError()
           << "gate_bias is " << formatNumber(*bias) << "; write a number from "
           << formatNumber(-kMaxNumber) << " to " << formatNumber(kMaxNumber);
  return success();
}

LogicalResult GlaOp::verify() {
  if (getGateNormalizer() && !(*getGateNormalizer() >= 1.0 / kMaxNumber))
    return emitOpError() << "gate_normalizer is "
                         << formatNumber(*getGateNormalizer())
                         << " and divides the log decay; write a number from "
                         << formatNumber(1.0 / kMaxNumber) << " on, such as 16";
  if (getGateRank())
    return verifyCount(*this, "gate_rank", *getGateRank(), 1, kMaxWidth);
  return success();
}
