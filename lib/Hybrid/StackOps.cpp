//===- StackOps.cpp - verifiers of StackOps.td -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SpecSyntax.h"
#include "SpecVerify.h"

using namespace mlir;
using namespace hybrid;

//===----------------------------------------------------------------------===//
// StackOp, LayerOp
//===----------------------------------------------------------------------===//

Type StackOp::getComputeType() {
  return getDtype().value_or(Float32Type::get(getContext()));
}

LogicalResult StackOp::verify() {
  if (failed(verifyCount(*this, "vocab", getVocab(), 1, kMaxWidth)) ||
      failed(verifyChannels(*this, "width", getWidth(), kMaxWidth)) ||
      failed(verifyCount(*this, "trained", getTrained(), 0, kMaxTokens)) ||
      failed(verifyComputeType(*this, getComputeType())) ||
      failed(verifyDropout(*this, "dropout", getDropoutOrDefault())))
    return failure();
  int64_t expected = 0;
  for (Operation &op : getBody().front()) {
    auto layer = dyn_cast<LayerOp>(op);
    if (!layer)
      return op.emitOpError("stands where a hybrid.layer is expected");
    if (static_cast<int64_t>(layer.getIndex()) != expected)
      return layer.emitOpError()
             << "has index " << layer.getIndex() << " where layer " << expected
             << " is expected; number the layers from 0 in order";
    ++expected;
  }
  if (expected == 0)
    return emitOpError("has no layers; write at least hybrid.layer 0");
  return success();
}

SmallVector<MixerInterface> LayerOp::getGroups() {
  return llvm::to_vector(getBody().front().getOps<MixerInterface>());
}

MlpOp LayerOp::getMlp() { return dyn_cast<MlpOp>(getBody().front().back()); }

LogicalResult LayerOp::verify() {
  Block &body = getBody().front();
  if (body.empty() || !isa<MixerInterface>(body.front()))
    return emitOpError("has no group of heads; write hybrid.softmax or "
                       "hybrid.recurrent first");
  for (Operation &op : body) {
    bool isLast = &op == &body.back();
    if (!isa<SoftmaxOp, RecurrentOp>(op) && !(isLast && isa<MlpOp>(op)))
      return op.emitOpError(
          "stands where hybrid.softmax, hybrid.recurrent or a "
          "last hybrid.mlp is expected");
  }
  return success();
}

//===----------------------------------------------------------------------===//
// RecurrentOp
//===----------------------------------------------------------------------===//

LogicalResult RecurrentOp::verify() {
  if (failed(verifyCount(*this, "heads", getHeads(), 1, kMaxHeads)) ||
      failed(verifyChannels(*this, "head_dim", getHeadDim(), kMaxHeadDim)) ||
      failed(verifyChannels(*this, "value_dim", getValueDim(), kMaxValueDim)) ||
      failed(verifyCount(*this, "convolution width", getConv(), 0, kMaxConv)))
    return failure();

  bool isDelta = getUpdate() == UpdateRule::delta;
  if (isDelta != (getBeta() > 0.0))
    return emitOpError() << "has update " << stringifyUpdateRule(getUpdate())
                         << " with beta " << formatNumber(getBeta())
                         << "; a delta rule needs a write strength above 0, an "
                            "additive update has beta(0)";
  bool decays = getDecay() != DecayKind::none;
  if (decays != (getGate() != GateKind::none))
    return emitOpError() << "has decay " << stringifyDecayKind(getDecay())
                         << " with gate " << stringifyGateKind(getGate())
                         << "; a decay and its gate go together";
  if (getGate() == GateKind::log_sigmoid &&
      !(getGateRank() > 0 && getGateNormalizer() > 0.0))
    return emitOpError() << "has gate log_sigmoid with rank " << getGateRank()
                         << " and normalizer "
                         << formatNumber(getGateNormalizer())
                         << "; both must be above 0";
  if (getWindow())
    return verifyHistory(*this, *getWindow(), *getStride());
  return success();
}

#define GET_OP_CLASSES
#include "hybrid/Hybrid/StackOps.cpp.inc"
