//===- RecurrentGraph.cpp - recurrences as graph operations -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One function per column of the mixer table. Nothing here knows a mixer by
// name.
//
//===----------------------------------------------------------------------===//

#include "MixerGraph.h"

#include "hybrid/Hybrid/NumberText.h"

using namespace mlir;
using namespace hybrid;

/// Queries, keys or values [tokens, heads, dim]: projection, convolution, SiLU.
static Value buildStream(EntryBuilder &entry, RecurrentOp group, Value x,
                         char letter, int64_t dim) {
  OpBuilder &builder = entry.builder;
  std::string name(1, letter);
  int64_t channels = group.getHeads() * dim, width = group.getConv();
  Value y = entry.linear(name + "_proj", x, channels);
  if (width > 0) {
    // The spread of a layer that is drawn uniformly in ±width^(-1/2).
    Value weight = entry.matrix(name + "_conv.weight", channels, width,
                                1.0 / std::sqrt(3.0 * width));
    Value state;
    if (entry.isCached())
      state = entry.state(name + "_conv_state", "conv", entry.computeType(),
                          {width - 1, channels});
    auto conv = ShortConvOp::create(builder, entry.at(name + "_conv"), y,
                                    weight, entry.segments(), state);
    if (state)
      entry.setNewState(name + "_conv_state", conv.getNewState());
    y = conv.getResult();
  }
  if (group.getSilu())
    y = SiluOp::create(builder, entry.at(name + "_silu"), entry.widen(y));
  return entry.splitHeads(name + "_proj", y, group.getHeads());
}

/// Keys and queries of length 1 or of mean square 1. The epsilon is the
/// published one of the l2 norm and stands beside the sum (LIN-25).
static Value buildQKNorm(EntryBuilder &entry, RecurrentOp group, Value x,
                         StringRef name) {
  if (!group.getQkNorm())
    return x;
  x = entry.widen(x);
  return NormalizeOp::create(entry.builder, entry.at(name), x.getType(),
                             *group.getQkNorm(), x, llvm::APFloat(1e-6));
}

/// First values of a gate's bias: the stated one, or `drawn`.
static std::string getBiasInit(RecurrentOp group, StringRef drawn) {
  if (std::optional<double> bias = group.getGateBias())
    return *bias == 0.0 ? "zeros" : "constant(" + formatNumber(*bias) + ")";
  return drawn.str();
}

/// ln α = log_sigmoid(W₂ W₁ x + b) / normalizer, [tokens, gates].
static Value buildLogSigmoidGate(EntryBuilder &entry, RecurrentOp group,
                                 Value x, int64_t gates) {
  OpBuilder &builder = entry.builder;
  Location loc = entry.at("gate");
  Value low = entry.linear("gate_down_proj", x, group.getGateRank());
  Value z = entry.linearF32("gate_up_proj", low, gates);
  Type type = z.getType();
  Value bias = entry.param("gate_up_proj.bias", gates,
                           getBiasInit(group, "zeros"), /*decay=*/false);
  z = AddOp::create(builder, loc, type, z, bias);
  z = LogSigmoidOp::create(builder, loc, type, z);
  return ScaleOp::create(
      builder, loc, type, z,
      builder.getF64FloatAttr(1.0 / group.getGateNormalizer()));
}

/// ln α = −exp(A_log) · softplus(W_a x + dt_bias), [tokens, gates]. The first
/// values are those of Mamba-2: A uniform in (0, 16), dt log-uniform.
static Value buildSoftplusGate(EntryBuilder &entry, RecurrentOp group, Value x,
                               int64_t gates) {
  OpBuilder &builder = entry.builder;
  Location loc = entry.at("gate");
  Value z = entry.linearF32("a_proj", x, gates);
  Type type = z.getType();
  Value bias = entry.param(
      "dt_bias", gates,
      getBiasInit(group, "inverse_softplus_log_uniform(0.001,0.1,0.0001)"),
      /*decay=*/false);
  Value logA = entry.param("A_log", gates, "log_uniform(0,16)",
                           /*decay=*/false);
  z = AddOp::create(builder, loc, type, z, bias);
  z = SoftplusOp::create(builder, loc, type, z);
  // exp(A_log) is spread over the tokens before the exponential, so that the
  // whole gate is row-wise and becomes one kernel.
  Value rate = FillOp::create(builder, loc, type, builder.getF64FloatAttr(0.0));
  rate = AddOp::create(builder, loc, type, rate, logA);
  rate = ExpOp::create(builder, loc, type, rate);
  z = MulOp::create(builder, loc, type, z, rate);
  return NegOp::create(builder, loc, type, z);
}

/// The log decay, [tokens, heads, 1] or [tokens, heads, head_dim], or null.
static Value buildDecay(EntryBuilder &entry, RecurrentOp group, Value x) {
  int64_t perHead =
      group.getDecay() == DecayKind::channel ? group.getHeadDim() : 1;
  int64_t gates = group.getHeads() * perHead;
  Value gate;
  switch (group.getGate()) {
  case GateKind::none:
    return nullptr;
  case GateKind::log_sigmoid:
    gate = buildLogSigmoidGate(entry, group, x, gates);
    break;
  case GateKind::softplus:
    gate = buildSoftplusGate(entry, group, x, gates);
    break;
  }
  return entry.splitHeads("gate", gate, group.getHeads());
}

/// β = beta · σ(W_b x), [tokens, heads], or null.
static Value buildWriteStrength(EntryBuilder &entry, RecurrentOp group,
                                Value x) {
  if (group.getBeta() == 0.0)
    return nullptr;
  OpBuilder &builder = entry.builder;
  Location loc = entry.at("beta");
  Value z = entry.linearF32("b_proj", x, group.getHeads());
  z = SigmoidOp::create(builder, loc, z.getType(), z);
  if (group.getBeta() == 1.0)
    return z;
  return ScaleOp::create(builder, loc, z.getType(), z, group.getBetaAttr());
}

/// Norm per head and gate, [tokens, heads · value_dim].
static Value buildOutput(EntryBuilder &entry, RecurrentOp group, Value o,
                         Value x) {
  OutputStage stage = group.getOutput();
  if (stage == OutputStage::norm || stage == OutputStage::norm_gate)
    o = entry.rmsNorm("o_norm", o);
  o = entry.joinHeads("recurrence", o);
  if (stage != OutputStage::gate && stage != OutputStage::norm_gate)
    return o;
  OpBuilder &builder = entry.builder;
  Location loc = entry.at("output_gate");
  Value gate =
      entry.linear("g_proj", x, group.getHeads() * group.getValueDim());
  o = entry.widen(o);
  gate = SiluOp::create(builder, loc, entry.widen(gate));
  return MulOp::create(builder, loc, o.getType(), o, gate);
}

Value hybrid::buildRecurrent(EntryBuilder &entry, RecurrentOp group, Value x) {
  OpBuilder &builder = entry.builder;
  int64_t keyDim = group.getHeadDim(), valueDim = group.getValueDim();
  Value q = buildStream(entry, group, x, 'q', keyDim);
  Value k = buildStream(entry, group, x, 'k', keyDim);
  Value v = buildStream(entry, group, x, 'v', valueDim);
  q = entry.narrow(buildQKNorm(entry, group, q, "q_norm"));
  k = entry.narrow(buildQKNorm(entry, group, k, "k_norm"));
  v = entry.narrow(v);
  Value decay = buildDecay(entry, group, x);
  Value beta = buildWriteStrength(entry, group, x);

  Value initial;
  if (entry.isCached()) {
    SmallVector<int64_t> shape = {group.getHeads(), keyDim, valueDim};
    if (group.getWindow())
      shape.insert(shape.begin(), *group.getWindow() / *group.getStride());
    initial = entry.state("state", "recurrent", entry.f32(), shape);
  }
  auto recurrence = RecurrenceOp::create(
      builder, entry.at("recurrence"), group.getUpdate(), q, k, v,
      entry.segments(), decay, beta, initial,
      llvm::APFloat(1.0 / std::sqrt(static_cast<double>(keyDim))),
      group.getWindowAttr(), group.getStrideAttr());
  if (initial)
    entry.setNewState("state", recurrence.getFinal());
  return buildOutput(entry, group, recurrence.getO(), x);
}
