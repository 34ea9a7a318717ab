//===- Mixers.cpp - the table of mixers -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Hybrid/Mixers.h"

using namespace mlir;
using namespace hybrid;

static const MixerRow rows[] = {
    // Yang et al., arXiv 2312.06635; the published layer has no convolution.
    {/*name=*/"gla", UpdateRule::additive, DecayKind::channel,
     GateKind::log_sigmoid,
     /*gateNormalizer=*/16.0, /*gateRank=*/16, /*gateBias=*/0.0,
     /*writeStrength=*/false, /*qkNorm=*/std::nullopt, /*conv=*/0,
     /*silu=*/false, OutputStage::norm_gate},
    // Yang et al., arXiv 2412.06464; A and dt are drawn as in Mamba-2.
    {/*name=*/"gdn", UpdateRule::delta, DecayKind::scalar, GateKind::softplus,
     /*gateNormalizer=*/1.0, /*gateRank=*/0, /*gateBias=*/std::nullopt,
     /*writeStrength=*/true, /*qkNorm=*/NormKind::l2, /*conv=*/4,
     /*silu=*/true, OutputStage::norm_gate},
    // Yang et al., arXiv 2406.06484; the published layer has no output gate.
    {/*name=*/"delta_net", UpdateRule::delta, DecayKind::none, GateKind::none,
     /*gateNormalizer=*/1.0, /*gateRank=*/0, /*gateBias=*/std::nullopt,
     /*writeStrength=*/true, /*qkNorm=*/NormKind::l2, /*conv=*/4,
     /*silu=*/true, OutputStage::norm},
};

ArrayRef<MixerRow> hybrid::getMixerRows() { return rows; }

const MixerRow *hybrid::lookupMixerRow(StringRef name) {
  const MixerRow *row = llvm::find_if(
      rows, [&](const MixerRow &row) { return row.name == name; });
  return row == std::end(rows) ? nullptr : row;
}

RecurrentOp hybrid::createRecurrent(OpBuilder &builder,
                                    RecurrentMixerInterface mixer,
                                    std::optional<int64_t> window,
                                    std::optional<int64_t> stride) {
  StringRef name = mixer->getName().stripDialect();
  const MixerRow *row = lookupMixerRow(name);
  assert(row && "an operation of the recurrence family without a row");
  MLIRContext *context = builder.getContext();

  double beta = 0.0;
  if (row->writeStrength)
    beta = mixer.getNegativeEigenvalues() ? 2.0 : 1.0;
  std::optional<double> bias = mixer.getGateBias();
  if (!bias)
    bias = row->gateBias;

  RecurrentOp::Properties properties;
  auto integer = [&](int64_t value) {
    return builder.getI64IntegerAttr(value);
  };
  auto number = [&](double value) { return builder.getF64FloatAttr(value); };
  properties.setMixer(builder.getStringAttr(name));
  properties.setHeads(integer(mixer.getHeads()));
  properties.setHeadDim(integer(mixer.getHeadDim()));
  properties.setValueDim(
      integer(mixer.getValueDim().value_or(mixer.getHeadDim())));
  properties.setUpdate(UpdateRuleAttr::get(context, row->update));
  properties.setDecay(DecayKindAttr::get(context, row->decay));
  properties.setGate(GateKindAttr::get(context, row->gate));
  properties.setGateNormalizer(
      number(mixer.getGateNormalizer().value_or(row->gateNormalizer)));
  properties.setGateRank(integer(mixer.getGateRank().value_or(row->gateRank)));
  properties.setBeta(number(beta));
  if (row->qkNorm)
    properties.setQkNorm(NormKindAttr::get(context, *row->qkNorm));
  int64_t conv = mixer.getConv().value_or(row->conv);
  properties.setConv(integer(conv));
  if (conv > 0 || row->silu)
    properties.setSilu(builder.getUnitAttr());
  properties.setOutput(
      OutputStageAttr::get(context, mixer.getOutput().value_or(row->output)));
  if (bias)
    properties.setGateBias(number(*bias));
  if (window) {
    properties.setWindow(integer(*window));
    properties.setStride(integer(*stride));
  }
  OperationState state(mixer->getLoc(), RecurrentOp::getOperationName());
  state.getOrAddProperties<RecurrentOp::Properties>() = properties;
  return cast<RecurrentOp>(builder.create(state));
}
