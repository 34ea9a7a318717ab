//===- BuildGraph.cpp - one function per entry point -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MixerGraph.h"

#include "hybrid/Graph/Passes.h"
#include "hybrid/Hybrid/OnlyModel.h"

namespace hybrid {
#define GEN_PASS_DEF_HYBRIDBUILDGRAPH
#include "hybrid/Graph/Passes.h.inc"
} // namespace hybrid

using namespace mlir;
using namespace hybrid;

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

/// The mixers of a layer: the groups' outputs side by side, then one
/// projection.
static Value buildMixers(EntryBuilder &entry, LayerOp layer, Value x) {
  std::string prefix = entry.prefix;
  SmallVector<MixerInterface> groups = layer.getGroups();
  SmallVector<Value> outputs;
  for (auto [index, group] : llvm::enumerate(groups)) {
    if (groups.size() > 1)
      entry.prefix = prefix + "groups." + std::to_string(index) + ".";
    entry.specLoc = group->getLoc();
    Value output;
    if (auto softmax = dyn_cast<SoftmaxOp>(group.getOperation()))
      output = buildSoftmax(entry, softmax, x);
    else
      output =
          buildRecurrent(entry, cast<RecurrentOp>(group.getOperation()), x);
    outputs.push_back(entry.narrow(output));
  }
  entry.prefix = prefix;
  Value heads = outputs.front();
  if (outputs.size() > 1)
    heads = ConcatOp::create(entry.builder, entry.at("groups"), outputs,
                             /*dim=*/1);
  return entry.project("o_proj", heads);
}

/// y = W_down (silu(W_gate x) · (W_up x)).
static Value buildMlp(EntryBuilder &entry, MlpOp mlp, Value x) {
  OpBuilder &builder = entry.builder;
  entry.specLoc = mlp.getLoc();
  Value gate = entry.linear("gate_proj", x, mlp.getChannels());
  Value up = entry.linear("up_proj", x, mlp.getChannels());
  gate = SiluOp::create(builder, entry.at("swiglu"), entry.widen(gate));
  Value inner = MulOp::create(builder, entry.at("swiglu"), gate.getType(), gate,
                              entry.widen(up));
  return entry.project("down_proj", inner);
}

/// x + dropout(f(norm(x))) for the mixers and for the feed-forward part.
static Value buildLayer(EntryBuilder &entry, LayerOp layer, Value x) {
  OpBuilder &builder = entry.builder;
  std::string place = "layers." + std::to_string(layer.getIndex()) + ".";
  auto residual = [&](StringRef name, Value y) {
    entry.prefix = place;
    Value wide = entry.widen(x);
    return entry.narrow(AddOp::create(builder, entry.at(name), wide.getType(),
                                      wide,
                                      entry.widen(entry.dropout(name, y))));
  };

  entry.prefix = place;
  entry.specLoc = layer.getLoc();
  Value normed = entry.rmsNorm("mixer_norm", x);
  entry.prefix = place + "mixer.";
  x = residual("mixer", buildMixers(entry, layer, normed));

  if (MlpOp mlp = layer.getMlp()) {
    normed = entry.rmsNorm("mlp_norm", x);
    entry.prefix = place + "mlp.";
    x = residual("mlp", buildMlp(entry, mlp, normed));
  }
  entry.prefix.clear();
  entry.specLoc = entry.stack.getLoc();
  return x;
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

/// The residual stream behind the last layer, [tokens, width].
static Value buildStreamOf(EntryBuilder &entry, Value ids) {
  StackOp stack = entry.stack;
  Value table = entry.matrix("embed.weight", stack.getVocab(), stack.getWidth(),
                             stack.getInitStd());
  Value x = EmbedOp::create(entry.builder, entry.at("embed"), ids,
                            entry.narrow(table));
  x = entry.narrow(entry.dropout("embed", x));
  for (auto layer : stack.getBody().getOps<LayerOp>())
    x = buildLayer(entry, layer, x);
  return x;
}

/// Norm and head over the rows of x; `head.weight`, or the embedding when tied.
static Value buildLogits(EntryBuilder &entry, Value x) {
  StackOp stack = entry.stack;
  Value normed = entry.narrow(entry.rmsNorm("norm", x));
  Value weight = entry.narrow(
      entry.matrix(stack.getTied() ? "embed.weight" : "head.weight",
                   stack.getVocab(), stack.getWidth(), stack.getInitStd()));
  auto rows = cast<RankedTensorType>(normed.getType());
  Type logits =
      rows.clone({rows.getDimSize(0), int64_t(stack.getVocab())}, entry.f32());
  return ProductOp::create(entry.builder, entry.at("head"), logits, normed,
                           weight, /*transpose_a=*/false, /*transpose_b=*/true);
}

/// The weighted cross entropy of each token: `loss`, and `training_loss` with
/// elements left out.
static EntryBuilder buildLoss(ModuleOp module, StackOp stack, bool training) {
  EntryBuilder entry(module, stack, training ? "training_loss" : "loss",
                     /*cached=*/false);
  if (training)
    entry.dropoutRate = stack.getDropoutOrDefault();
  Type i32 = entry.builder.getI32Type();
  auto perToken = RankedTensorType::get({ShapedType::kDynamic}, i32);
  Value ids = entry.input("ids", perToken);
  Value labels = entry.input("labels", perToken);
  Value weights = entry.input("weights", entry.tensor({}, entry.f32()));
  entry.segments();
  Value logits = buildLogits(entry, buildStreamOf(entry, ids));
  entry.finish("loss", CrossEntropyOp::create(entry.builder, entry.at("loss"),
                                              logits, labels, weights));
  return entry;
}

/// `extend`: the logits of each segment's last row, and `extend_all`: those of
/// all rows. Norm and head run on the rows that are asked for.
static EntryBuilder buildExtend(ModuleOp module, StackOp stack, bool all) {
  EntryBuilder entry(module, stack, all ? "extend_all" : "extend",
                     /*cached=*/true);
  Value ids =
      entry.input("ids", RankedTensorType::get({ShapedType::kDynamic},
                                               entry.builder.getI32Type()));
  entry.segments();
  Value x = buildStreamOf(entry, ids);
  if (!all)
    x = LastRowsOp::create(entry.builder, entry.at("last_rows"), x,
                           entry.segments());
  entry.finish("logits", buildLogits(entry, x));
  return entry;
}

/// Functions beside a model may have any names but those that it gives its
/// entry points, here and in later phases.
static LogicalResult checkNames(ModuleOp module, StackOp stack) {
  for (StringRef name : {"loss", "training_loss", "extend", "extend_all",
                         "backward", "update", "copy_parameters"}) {
    Operation *other = module.lookupSymbol(name);
    if (other && other != stack)
      return other->emitOpError()
             << "has the name '" << name
             << "' of an entry point of the model beside it; rename it";
  }
  return success();
}

namespace {

struct BuildGraph : public hybrid::impl::HybridBuildGraphBase<BuildGraph> {
  using HybridBuildGraphBase::HybridBuildGraphBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<StackOp> only = getOnlyModel<StackOp>(module);
    if (failed(only) || failed(checkNames(module, *only)))
      return signalPassFailure();
    StackOp stack = *only;
    EntryBuilder loss = buildLoss(module, stack, /*training=*/false);
    if (stack.getDropoutOrDefault() > 0.0)
      buildLoss(module, stack, /*training=*/true);
    EntryBuilder extend = buildExtend(module, stack, /*all=*/false);
    buildExtend(module, stack, /*all=*/true);

    ModelTables tables{
        {stack.getSymName().str(), static_cast<int64_t>(stack.getVocab()),
         static_cast<int64_t>(stack.getTrained()), stack.getComputeType()},
        loss.getParams(),
        extend.getStates()};
    setModelTables(module, tables);
    numParameters = tables.params.size();
    numStates = tables.states.size();
    stack.erase();
  }
};

} // namespace
