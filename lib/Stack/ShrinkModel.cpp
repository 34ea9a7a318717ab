//===- ShrinkModel.cpp - small sizes, the same structure -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Hybrid/HybridOps.h"
#include "hybrid/Stack/Passes.h"
#include "llvm/ADT/TypeSwitch.h"

namespace hybrid {
#define GEN_PASS_DEF_HYBRIDSHRINKMODEL
#include "hybrid/Stack/Passes.h.inc"
} // namespace hybrid

using namespace mlir;
using namespace hybrid;

static constexpr int64_t kVocab = 96, kWidth = 64, kChannels = 96;
static constexpr int64_t kHeads = 2, kHeadDim = 16, kTrained = 64;

namespace {

class Shrinker {
public:
  explicit Shrinker(ModelOp model)
      : model(model), factor(std::max<int64_t>(
                          1, model.getTrained().value_or(4096) / kTrained)) {}

  void run() {
    shrinkModel();
    model.walk([&](Operation *op) {
      llvm::TypeSwitch<Operation *>(op)
          .Case([&](SoftmaxOp softmax) { shrinkSoftmax(softmax); })
          .Case([&](SwlaOp swla) { shrinkHistory(swla); })
          .Case([&](RecurrentMixerInterface mixer) { shrinkRecurrent(mixer); })
          .Case([&](MlpOp mlp) {
            mlp.setChannels(std::min(mlp.getChannels(), kChannels));
          });
    });
    // Groups are visited by now, so their new heads add up to the total.
    model.walk([&](HeadsOp heads) {
      if (heads.getTotal())
        heads.setTotal(countHeads(heads));
    });
  }

private:
  /// A length of tokens, at least `least`.
  int64_t shrinkLength(int64_t length, int64_t least) {
    return std::min(length, std::max(least, length / factor));
  }

  void shrinkModel() {
    model.setVocab(std::min(model.getVocab(), kVocab));
    model.setWidth(std::min(model.getWidth(), kWidth));
    if (model.getTrained())
      model.setTrained(shrinkLength(*model.getTrained(), kTrained));
    int64_t layers = 2;
    if (auto mix = dyn_cast<MixOp>(model.getPlan()))
      layers = mix.getPeriod();
    else if (auto pattern = dyn_cast<PatternOp>(model.getPlan()))
      layers = pattern.getLetters().size();
    else if (isa<LayersOp>(model.getPlan()))
      layers = model.getLayers();
    // A model shorter than its period, or with leftover layers, is about that.
    if (model.getLayers() % layers == 0)
      model.setLayers(layers);
  }

  void shrinkSoftmax(SoftmaxOp op) {
    int64_t group = op.getHeads() / op.getKvHeadsOrDefault();
    int64_t kvHeads = std::min(op.getKvHeadsOrDefault(), kHeads);
    op.setHeads(kvHeads * group);
    if (op.getKvHeads())
      op.setKvHeads(kvHeads);
    op.setHeadDim(std::min(op.getHeadDim(), kHeadDim));
    if (op.getWindow())
      op.setWindow(shrinkLength(*op.getWindow(), 8));
    if (op.getSinks())
      op.setSinks(std::min<int64_t>(*op.getSinks(), 2));
    if (op.getLogitTrained())
      op.setLogitTrained(shrinkLength(*op.getLogitTrained(), 16));
  }

  /// Keeps the number of open windows.
  void shrinkHistory(SwlaOp op) {
    int64_t open = op.getWindow() / op.getStride();
    op.setStride(shrinkLength(op.getStride(), 4));
    op.setWindow(op.getStride() * open);
  }

  void shrinkRecurrent(RecurrentMixerInterface op) {
    int64_t headDim = std::min(op.getHeadDim(), kHeadDim);
    if (op.getValueDim()) {
      int64_t scaled = *op.getValueDim() * headDim / op.getHeadDim();
      op.setValueDim(std::max<int64_t>(8, llvm::alignDown(scaled, 8)));
    }
    op.setHeads(std::min(op.getHeads(), kHeads));
    op.setHeadDim(headDim);
  }

  static int64_t countHeads(HeadsOp heads) {
    int64_t sum = 0;
    heads.walk([&](MixerInterface mixer) { sum += mixer.getHeads(); });
    return sum;
  }

  ModelOp model;
  int64_t factor;
};

struct ShrinkModel : public hybrid::impl::HybridShrinkModelBase<ShrinkModel> {
  using HybridShrinkModelBase::HybridShrinkModelBase;

  void runOnOperation() override {
    for (auto model : getOperation().getOps<ModelOp>())
      Shrinker(model).run();
  }
};

} // namespace
