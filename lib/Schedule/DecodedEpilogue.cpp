//===- DecodedEpilogue.cpp - epilogues where calls may be steps -----------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProductEpilogue.h"
#include "RowProducts.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace hybrid;

namespace {
/// A region, its products, what makes their rows and the products that read it:
/// what steps of a few rows run as one or two launches, and what calls of many
/// rows fold. Each kind of call gets copies of its own.
class DecodedFolding {
public:
  DecodedFolding(Scheduler &scheduler, RowwiseOp region,
                 ArrayRef<ProductOp> products, int64_t mostRows)
      : scheduler(scheduler), region(region), products(products),
        mostRows(mostRows) {}
  LogicalResult schedule();

private:
  void findMembers();
  bool hoistWeights();
  SmallVector<Value> copy(OpBuilder &builder);

  Scheduler &scheduler;
  RowwiseOp region;
  ArrayRef<ProductOp> products;
  /// Calls of more rows fill the processors with tiles of the products.
  int64_t mostRows;
  /// In the order of the block, with what others read of them.
  SmallVector<Operation *> members;
  SmallVector<Value> results;
  RowwiseOp copied; // of the region, by the last `copy`
};
} // namespace

void DecodedFolding::findMembers() {
  Block *block = region->getBlock();
  ProductOp first = products.front();
  if (auto maker = first.getA().getDefiningOp<RowwiseOp>();
      maker && maker->getBlock() == block)
    members.push_back(maker);
  llvm::append_range(members, products);
  members.push_back(region);
  for (Operation *user : region->getUsers())
    if (auto reader = dyn_cast<ProductOp>(user);
        reader && reader->getBlock() == block &&
        reader.getA().getDefiningOp() == region)
      members.push_back(reader);
  llvm::sort(members,
             [](Operation *x, Operation *y) { return x->isBeforeInBlock(y); });
  llvm::SmallPtrSet<Operation *, 8> inside(llvm::from_range, members);
  for (Operation *member : members)
    for (Value result : member->getResults())
      if (llvm::any_of(result.getUsers(),
                       [&](Operation *user) { return !inside.contains(user); }))
        results.push_back(result);
}

/// Copies of parameters are places, which may be asked for anywhere.
bool DecodedFolding::hoistWeights() {
  for (Operation *member : members) {
    auto product = dyn_cast<ProductOp>(member);
    Operation *matrix = product ? product.getB().getDefiningOp() : nullptr;
    if (!matrix || matrix->isBeforeInBlock(members.front()))
      continue;
    auto cast = dyn_cast<CastOp>(matrix);
    if (!cast || !cast.isParameterCopy())
      return false;
    cast->moveBefore(members.front());
  }
  return true;
}

SmallVector<Value> DecodedFolding::copy(OpBuilder &builder) {
  IRMapping mapping;
  for (Operation *member : members) {
    Operation *made = builder.clone(*member, mapping);
    if (member == region)
      copied = cast<RowwiseOp>(made);
  }
  return llvm::map_to_vector(
      results, [&](Value value) { return mapping.lookup(value); });
}

LogicalResult DecodedFolding::schedule() {
  findMembers();
  if (!hoistWeights())
    return success();
  OpBuilder builder(members.front());
  SmallVector<Type> types =
      llvm::map_to_vector(results, [](Value value) { return value.getType(); });
  ProductOp first = products.front();
  AffineExpr rows = getSizes(first.getType()).getResult(0);
  Block *few = nullptr;
  RowwiseOp folded;
  ValueRange made = scheduler.either(
      builder, region.getLoc(), types, mostRows - rows,
      [&](OpBuilder &inner) {
        few = inner.getInsertionBlock();
        return copy(inner);
      },
      [&](OpBuilder &inner) {
        SmallVector<Value> values = copy(inner);
        folded = copied;
        return values;
      });
  for (auto [value, by] : llvm::zip_equal(results, made))
    value.replaceAllUsesWith(by);
  for (Operation *member : llvm::reverse(members))
    member->erase();
  Folding folding(scheduler, folded);
  if (folding.find() && failed(folding.apply()))
    return failure();
  return scheduleRowProducts(scheduler, *few);
}

LogicalResult hybrid::scheduleDecodedEpilogue(Scheduler &scheduler,
                                              RowwiseOp region,
                                              const Folding &folding) {
  return DecodedFolding(scheduler, region, folding.getProducts(),
                        folding.idleRows())
      .schedule();
}
