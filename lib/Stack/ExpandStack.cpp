//===- ExpandStack.cpp - write every layer and default out -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Hybrid/Mixers.h"
#include "hybrid/Stack/Passes.h"

namespace hybrid {
#define GEN_PASS_DEF_HYBRIDEXPANDSTACK
#include "hybrid/Stack/Passes.h.inc"
} // namespace hybrid

using namespace mlir;
using namespace hybrid;

//===----------------------------------------------------------------------===//
// Which mixer a layer has
//===----------------------------------------------------------------------===//

/// The `hybrid.named` of `plan` called `name`; the verifier has seen to it.
static Operation *findNamed(Region &plan, StringRef name) {
  for (auto named : plan.getOps<NamedOp>())
    if (named.getName() == name)
      return named.getMixer();
  llvm_unreachable("a name without its mixer passed the verifier");
}

/// Tells of a mixer that a mix gives no layer, which is legal (a ratio longer
/// than the model) and seldom meant.
static void warnOfUnusedMixer(MixOp mix, int64_t layers) {
  auto isFull = [&](int64_t index) { return mix.isFull(index, layers); };
  auto all = llvm::seq<int64_t>(0, layers);
  bool anyFull = llvm::any_of(all, isFull), allFull = llvm::all_of(all, isFull);
  if (anyFull && !allFull)
    return;
  Operation &unused =
      anyFull ? mix.getBody().front().front() : mix.getBody().front().back();
  InFlightDiagnostic diagnostic =
      mix.emitWarning() << "ratio " << mix.getBiased() << " : " << mix.getFull()
                        << " over " << layers
                        << " layers leaves a mixer without a layer; set "
                           "offset(n) below "
                        << layers << " or leftover(last_full)";
  diagnostic.attachNote(unused.getLoc()) << "no layer has this mixer";
}

/// For each layer the operation that stands for its mixers.
static SmallVector<Operation *> assignMixers(ModelOp model) {
  int64_t layers = model.getLayers();
  SmallVector<Operation *> assigned(layers, model.getPlan());

  if (auto mix = dyn_cast<MixOp>(model.getPlan())) {
    Block &entries = mix.getBody().front();
    for (auto [index, mixer] : llvm::enumerate(assigned))
      mixer = mix.isFull(index, layers) ? &entries.back() : &entries.front();
    warnOfUnusedMixer(mix, layers);
  } else if (auto pattern = dyn_cast<PatternOp>(model.getPlan())) {
    StringRef letters = pattern.getLetters();
    for (auto [index, mixer] : llvm::enumerate(assigned))
      mixer = findNamed(pattern.getBody(),
                        letters.substr(index % letters.size(), 1));
    if (pattern.getLeftover() == PatternLeftover::last)
      assigned.back() = findNamed(pattern.getBody(), letters.take_back(1));
  } else if (auto list = dyn_cast<LayersOp>(model.getPlan())) {
    auto names = list.getNames().getAsValueRange<StringAttr>();
    for (auto [mixer, name] : llvm::zip_equal(assigned, names))
      mixer = findNamed(list.getBody(), name);
  }
  return assigned;
}

//===----------------------------------------------------------------------===//
// What a layer is made of
//===----------------------------------------------------------------------===//

/// A copy of `op` with every default written out.
static void resolveSoftmax(OpBuilder &builder, SoftmaxOp op, int64_t trained) {
  auto resolved = cast<SoftmaxOp>(builder.clone(*op));
  resolved.setKvHeads(op.getKvHeadsOrDefault());
  if (op.getPosition() == PositionKind::rope)
    resolved.setRopeBase(op.getRopeBaseOrDefault());
  if (op.getLogitScale() == LogitScaleKind::log_n)
    resolved.setLogitTrained(op.getLogitTrained().value_or(trained));
}

/// The head groups that `mixer` stands for.
static SmallVector<Operation *> getGroups(Operation *mixer) {
  auto heads = dyn_cast<HeadsOp>(mixer);
  if (!heads)
    return {mixer};
  return llvm::to_vector(llvm::make_pointer_range(heads.getBody().front()));
}

static void resolveGroup(OpBuilder &builder, Operation *group,
                         int64_t trained) {
  if (auto softmax = dyn_cast<SoftmaxOp>(group))
    return resolveSoftmax(builder, softmax, trained);
  if (auto swla = dyn_cast<SwlaOp>(group)) {
    createRecurrent(builder, cast<RecurrentMixerInterface>(swla.getMixer()),
                    swla.getWindow(), swla.getStride());
    return;
  }
  createRecurrent(builder, cast<RecurrentMixerInterface>(group));
}

namespace {

struct ExpandStack : public hybrid::impl::HybridExpandStackBase<ExpandStack> {
  using HybridExpandStackBase::HybridExpandStackBase;

  void runOnOperation() override {
    for (auto model :
         llvm::make_early_inc_range(getOperation().getOps<ModelOp>())) {
      expand(model);
      model.erase();
    }
  }

  void expand(ModelOp model) {
    OpBuilder builder(model);
    // A rate of 0 leaves nothing out, as none does.
    FloatAttr dropout = model.getDropout().value_or(0.0) > 0.0
                            ? model.getDropoutAttr()
                            : FloatAttr();
    auto stack = StackOp::create(
        builder, model.getLoc(), model.getSymName(), model.getVocab(),
        model.getWidth(), model.getTrained().value_or(0),
        model.getEpsilon().value_or(1e-5), model.getInitStd().value_or(0.02),
        model.getDtypeAttr(), dropout, model.getTied());
    if (Attribute recompute = model->getAttr("hybrid.recompute"))
      stack->setAttr("hybrid.recompute", recompute);
    builder.createBlock(&stack.getBody());
    for (auto [index, mixer] : llvm::enumerate(assignMixers(model))) {
      OpBuilder::InsertionGuard guard(builder);
      auto layer = LayerOp::create(builder, mixer->getLoc(), index);
      builder.createBlock(&layer.getBody());
      for (Operation *group : getGroups(mixer)) {
        resolveGroup(builder, group, model.getTrained().value_or(0));
        ++numGroups;
      }
      if (MlpOp mlp = model.getMlp())
        builder.clone(*mlp);
      ++numLayers;
    }
  }
};

} // namespace
