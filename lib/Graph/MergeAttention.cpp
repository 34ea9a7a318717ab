//===- MergeAttention.cpp - head groups of a layer as one attention ------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Groups that stand side by side in a layer's output and differ in their window
// and sinks alone are one attention with an entry per head. Its operands are
// concatenations, whose parts the producers of q, k and v write in place.
//
//===----------------------------------------------------------------------===//

#include "hybrid/Graph/Passes.h"

#include "hybrid/Hybrid/HybridOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"

namespace hybrid {
#define GEN_PASS_DEF_HYBRIDMERGEATTENTION
#include "hybrid/Graph/Passes.h.inc"
} // namespace hybrid

using namespace mlir;
using namespace hybrid;

/// The `[tokens, heads, dim]` behind a part of a layer's output, if joining its
/// heads is all that is done with it.
static Operation *getMixer(Value part) {
  auto reshape = part.getDefiningOp<ReshapeOp>();
  if (!reshape || !part.hasOneUse() || !reshape.getX().hasOneUse())
    return nullptr;
  return reshape.getX().getDefiningOp();
}

static AttentionOp getAttention(Value part) {
  auto attention = dyn_cast_or_null<AttentionOp>(getMixer(part));
  return attention && attention.getLogSumExp().use_empty() ? attention
                                                           : AttentionOp();
}

static int64_t getSize(Value value, unsigned dim) {
  return cast<RankedTensorType>(value.getType()).getDimSize(dim);
}

/// Why two attentions cannot be one; empty when they can.
static std::string findDifference(AttentionOp a, AttentionOp b) {
  auto differ = [](StringRef what, auto left, auto right) {
    std::string text;
    llvm::raw_string_ostream(text) << what << " " << left << " and " << right;
    return text;
  };
  if (getSize(a.getQ(), 2) != getSize(b.getQ(), 2))
    return differ("head dims", getSize(a.getQ(), 2), getSize(b.getQ(), 2));
  if (getSize(a.getV(), 2) != getSize(b.getV(), 2))
    return differ("value dims", getSize(a.getV(), 2), getSize(b.getV(), 2));
  if (a.getKvGroup() != b.getKvGroup())
    return differ("query heads per key head", a.getKvGroup(), b.getKvGroup());
  if (a.getScale() != b.getScale())
    return differ("scales", a.getScale().convertToDouble(),
                  b.getScale().convertToDouble());
  if (a.getSegments() != b.getSegments())
    return "segments of two tables";
  return {};
}

/// `layers.3.mixer.groups` around the place in the spec becomes
/// `layers.3.mixer.groups.attention`.
static Location nameWithin(Location loc, StringRef name) {
  auto named = dyn_cast<NameLoc>(loc);
  if (!named)
    return loc;
  auto full = StringAttr::get(loc.getContext(),
                              named.getName().getValue() + "." + name);
  return NameLoc::get(full, named.getChildLoc());
}

//===----------------------------------------------------------------------===//
// Merging
//===----------------------------------------------------------------------===//

/// One attention in place of neighbours that agree; its joined heads.
static Value merge(ArrayRef<AttentionOp> group, ConcatOp layer) {
  AttentionOp first = group.front();
  OpBuilder builder(group.back());
  auto join = [&](StringRef name, auto operand) -> Value {
    SmallVector<Value> parts;
    for (AttentionOp attention : group)
      parts.push_back(operand(attention));
    return ConcatOp::create(builder, nameWithin(layer.getLoc(), name), parts,
                            /*dim=*/1);
  };
  Value q = join("q", [](AttentionOp op) { return op.getQ(); });
  Value k = join("k", [](AttentionOp op) { return op.getK(); });
  Value v = join("v", [](AttentionOp op) { return op.getV(); });
  SmallVector<int64_t> windows, sinks;
  for (AttentionOp attention : group) {
    llvm::append_range(windows, attention.getWindows());
    llvm::append_range(sinks, attention.getSinks());
  }
  Location loc = nameWithin(layer.getLoc(), "attention");
  auto merged = AttentionOp::create(builder, loc, q, k, v, first.getSegments(),
                                    first.getScale(), windows, sinks);
  Value o = merged.getO();
  auto type = cast<RankedTensorType>(o.getType());
  int64_t joined[] = {type.getDimSize(0),
                      type.getDimSize(1) * type.getDimSize(2)};
  return ReshapeOp::create(builder, loc, type.clone(joined), o);
}

static void explainMerged(ArrayRef<AttentionOp> group) {
  auto remark =
      remark::passed(group.front()->getLoc(),
                     remark::RemarkOpts::name("HYB-G101").category("graph"));
  if (!remark)
    return;
  int64_t heads = 0;
  for (AttentionOp attention : group)
    heads += getSize(attention.getQ(), 1);
  remark << std::to_string(group.size()) +
                " head groups are one attention of " + std::to_string(heads) +
                " heads"
         << remark::reason("they differ in window and sinks alone");
}

static void explainApart(Operation *op, const Twine &reason) {
  auto remark = remark::missed(
      op->getLoc(), remark::RemarkOpts::name("HYB-G201").category("graph"));
  if (remark)
    remark << "head group keeps an attention of its own"
           << remark::reason("{0}", reason.str());
}

namespace {
/// The head groups of one layer, in the order of its output.
class LayerGroups {
public:
  explicit LayerGroups(ConcatOp layer) : layer(layer) {}

  /// Merges what can be; the number of groups that are gone.
  unsigned run();

private:
  void take(Value part);
  void close();

  ConcatOp layer;
  SmallVector<Value> parts;       // of the new output
  SmallVector<AttentionOp> group; // neighbours that agree, not yet in `parts`
  AttentionOp lastApart;          // attention before a mixer that is none
  unsigned merged = 0;
};
} // namespace

void LayerGroups::close() {
  if (group.size() > 1) {
    explainMerged(group);
    parts.push_back(merge(group, layer));
    merged += group.size() - 1;
  } else if (!group.empty()) {
    for (Operation *user : group.front().getO().getUsers())
      parts.push_back(user->getResult(0));
  }
  group.clear();
}

void LayerGroups::take(Value part) {
  AttentionOp attention = getAttention(part);
  if (!attention) {
    if (isa_and_nonnull<AttentionCachedOp>(getMixer(part)))
      explainApart(getMixer(part), "its cache has rows of its own number, so "
                                   "that a window keeps no more than it sees");
    if (!group.empty())
      lastApart = group.back();
    close();
    parts.push_back(part);
    return;
  }
  if (lastApart && group.empty())
    explainApart(attention, "another mixer stands between it and the attention "
                            "before it");
  if (!group.empty())
    if (std::string difference = findDifference(group.back(), attention);
        !difference.empty()) {
      explainApart(attention, "it differs from its neighbour: " + difference);
      close();
    }
  lastApart = {};
  group.push_back(attention);
}

unsigned LayerGroups::run() {
  SmallVector<Value> old(layer.getParts());
  for (Value part : old)
    take(part);
  close();
  if (merged == 0)
    return 0;

  SmallVector<Operation *> dead;
  for (Value part : old)
    if (!llvm::is_contained(parts, part))
      dead.append({part.getDefiningOp(), getAttention(part)});
  if (parts.size() == 1) {
    layer.getResult().replaceAllUsesWith(parts.front());
    layer.erase();
  } else {
    layer.getPartsMutable().assign(parts);
  }
  for (Operation *op : dead)
    op->erase();
  return merged;
}

namespace {
struct MergeAttention
    : public hybrid::impl::HybridMergeAttentionBase<MergeAttention> {
  using HybridMergeAttentionBase::HybridMergeAttentionBase;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function->hasAttr("hybrid.entry"))
        continue;
      // The output of a layer's groups is [tokens, heads · dim]; a merged
      // attention's operands are concatenations of another rank.
      for (auto concat : llvm::make_early_inc_range(
               function.getBody().front().getOps<ConcatOp>()))
        if (concat.getDim() == 1 && concat.getType().getRank() == 2)
          numMerged += LayerGroups(concat).run();
    }
  }
};
} // namespace
