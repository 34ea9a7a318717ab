//===- RowProducts.cpp - products of a decoding step, several at once -----===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In a step of a few rows each launch takes longer to begin than to work. The
// products that read the same rows are therefore one launch, and so is the
// row-wise operation that makes these rows: every point makes them again, which
// costs less than a launch. Calls of more rows have the operations one by one.
//
//===----------------------------------------------------------------------===//

#include "RowProducts.h"

#include "Scheduler.h"
#include "SoftmaxStep.h"
#include "hybrid/Tile/Families/RowProducts.h"
#include "hybrid/Tile/Families/Rowwise.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace hybrid;

namespace {
/// Products of the same rows, and what makes these.
class ProductGroup {
public:
  ProductGroup(Scheduler &scheduler, ProductOp first);

  /// Replaces the operations by launches.
  LogicalResult schedule();

private:
  void findProducts(ProductOp first);
  void findRowwise();
  void findLastRows();
  void findConvolutions();
  void findAttention();
  /// The operation in whose place the launches are put.
  Operation *place() { return rowwise ? rowwise : products.front(); }
  /// The first product's: it is what takes time.
  Location location() { return products.front().getLoc(); }
  /// Copies of parameters are places, which may be asked for anywhere.
  void hoistWeights();
  tile::RowProductsShape shapeOf(bool isConvolved);
  int64_t pointsOf(int64_t tile);
  int64_t columnTile();
  tile::ProgramOp makeProgram(bool isConvolved);
  SmallVector<Value> launch(OpBuilder &builder, bool isConvolved);
  SmallVector<Value> atOnce(OpBuilder &builder);
  void convolveApart(OpBuilder &builder, IRMapping &mapping);
  SmallVector<Value> oneByOne(OpBuilder &builder);
  LogicalResult scheduleCopies();
  void explain();

  Scheduler &scheduler;
  Value rows;
  SmallVector<ProductOp> products;
  /// Behind each product; null where there is none.
  SmallVector<ShortConvOp> convolutions;
  Operation *rowwise = nullptr;
  /// What it reads, if all its rows are last ones.
  SmallVector<LastRowsOp> lastRows;
  /// Or the attention whose output the rows are, which the products join from
  /// its ranges of keys.
  std::optional<AttentionStep> attention;
  /// Results of the row-wise operation that others read too.
  SmallVector<unsigned> kept;
  SmallVector<Value> replaced;
  SmallVector<Operation *> copies;
};
} // namespace

/// Whether the program for a few rows is made for products like this one.
static bool readsRows(ProductOp op) {
  auto result = cast<RankedTensorType>(op.getType());
  return op.getTransposeB() && !op.getTransposeA() && result.isDynamicDim(0);
}

ProductGroup::ProductGroup(Scheduler &scheduler, ProductOp first)
    : scheduler(scheduler), rows(first.getA()) {
  findProducts(first);
  findRowwise();
  findLastRows();
  findConvolutions();
  findAttention();
  SmallVector<Value> states;
  for (auto [product, convolution] : llvm::zip_equal(products, convolutions)) {
    replaced.push_back(convolution ? convolution.getResult()
                                   : product.getResult());
    if (convolution)
      states.push_back(convolution.getNewState());
  }
  llvm::append_range(replaced, states);
  if (attention)
    llvm::append_values(replaced, attention->getOp().getNewKCache(),
                        attention->getOp().getNewVCache());
  SmallVector<Value> others;
  if (rowwise)
    for (unsigned n : kept)
      others.push_back(rowwise->getResult(n));
  replaced.insert(replaced.begin(), others.begin(), others.end());
}

/// All products of the rows whose matrices are there from the start.
void ProductGroup::findProducts(ProductOp first) {
  products.push_back(first);
  auto isParameter = [](ProductOp product) {
    Value b = product.getB();
    if (auto cast = b.getDefiningOp<CastOp>())
      return cast.isParameterCopy();
    return isa<BlockArgument>(b);
  };
  if (!isParameter(first))
    return;
  for (Operation *user : rows.getUsers()) {
    auto product = dyn_cast<ProductOp>(user);
    if (product && product != first && product.getA() == rows &&
        product->getBlock() == first->getBlock() && readsRows(product) &&
        isParameter(product))
      products.push_back(product);
  }
  llvm::sort(products,
             [](ProductOp x, ProductOp y) { return x->isBeforeInBlock(y); });
}

void ProductGroup::findRowwise() {
  Operation *producer = rows.getDefiningOp();
  auto single = dyn_cast_or_null<RowwiseOpInterface>(producer);
  bool isRowwise =
      isa_and_nonnull<RowwiseOp>(producer) ||
      (single && single.isRowwise() && tile::hasRowwiseEmission(producer) &&
       !isa<ReshapeOp, SliceOp, ConcatOp>(producer));
  // Matrices that are made on the way may need the rows' neighbours.
  if (!isRowwise || producer->getBlock() != products.front()->getBlock() ||
      isa<CastOp>(producer))
    return;
  for (ProductOp product : products)
    if (Operation *matrix = product.getB().getDefiningOp())
      if (!isa<CastOp>(matrix))
        return;
  rowwise = producer;
  llvm::SmallPtrSet<Operation *, 8> inside(llvm::from_range, products);
  for (OpResult result : producer->getResults())
    if (llvm::any_of(result.getUsers(),
                     [&](Operation *user) { return !inside.contains(user); }))
      kept.push_back(result.getResultNumber());
}

void ProductGroup::findLastRows() {
  if (!rowwise || !kept.empty())
    return;
  SmallVector<LastRowsOp> found;
  for (Value operand : rowwise->getOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    if (type && type.hasStaticShape())
      continue;
    auto last = operand.getDefiningOp<LastRowsOp>();
    if (!last || !last->hasOneUse() ||
        last->getBlock() != rowwise->getBlock() ||
        (!found.empty() && last.getSegments() != found.front().getSegments()))
      return;
    found.push_back(last);
  }
  lastRows = std::move(found);
}

/// Short convolutions with a state behind products that nothing else reads. In
/// a launch they have one number of taps.
void ProductGroup::findConvolutions() {
  int64_t taps = 0;
  for (ProductOp product : products) {
    auto op = product->hasOneUse()
                  ? dyn_cast<ShortConvOp>(*product->getUsers().begin())
                  : ShortConvOp();
    bool isOurs = op && op.getX() == product && op.getState() &&
                  op->getBlock() == product->getBlock() &&
                  llvm::all_of(op->getOperands().drop_front(), [](Value value) {
                    return isa<BlockArgument>(value);
                  });
    if (isOurs) {
      int64_t ofThis = op.getWeight().getType().getDimSize(1);
      int64_t channels = op.getWeight().getType().getDimSize(0);
      isOurs = (taps == 0 || taps == ofThis) && channels % columnTile() == 0;
      taps = isOurs ? ofThis : taps;
    }
    convolutions.push_back(isOurs ? op : ShortConvOp());
  }
}

void ProductGroup::findAttention() {
  auto reshape = rows.getDefiningOp<ReshapeOp>();
  auto op = reshape ? reshape.getX().getDefiningOp<AttentionCachedOp>()
                    : AttentionCachedOp();
  if (!op || !AttentionStep::isFor(scheduler.target) ||
      op->getBlock() != products.front()->getBlock() ||
      !op.getO().hasOneUse() ||
      !llvm::hasNItems(rows.getUses(), products.size()) ||
      llvm::any_of(convolutions, [](ShortConvOp conv) { return bool(conv); }))
    return;
  // Nothing may read the caches before the products.
  for (Value cache : {op.getNewKCache(), op.getNewVCache()})
    for (Operation *user : cache.getUsers())
      if (user->getBlock() != op->getBlock() ||
          user->isBeforeInBlock(products.front()))
        return;
  attention.emplace(scheduler, op);
  if (!attention->canJoin())
    attention.reset();
}

void ProductGroup::hoistWeights() {
  for (ProductOp product : products)
    if (auto copy = product.getB().getDefiningOp<CastOp>();
        copy && copy->getBlock() == place()->getBlock() &&
        !copy->isBeforeInBlock(place()))
      copy->moveBefore(place());
}

/// Points of a launch where each takes `tile` columns of one matrix.
int64_t ProductGroup::pointsOf(int64_t tile) {
  int64_t points = 0;
  for (ProductOp product : products)
    points += llvm::divideCeil(
        cast<RankedTensorType>(product.getType()).getDimSize(1), tile);
  return points;
}

/// The columns of a point: a processor's share, where all that it reads fits;
/// else as many as it can ask for at once, fewer where that leaves processors
/// idle. A share is a multiple of `readColumns`, one for each warp. Matrix
/// units take any number, so that no processor is left over on which the blocks
/// of the launch behind would pile up; but channels of a convolution are not
/// cut, and have half of `readColumns` where only then the share fits.
int64_t ProductGroup::columnTile() {
  const TargetTraits &target = scheduler.target;
  auto matrix = cast<RankedTensorType>(products.front().getB().getType());
  int64_t width = matrix.getElementTypeBitWidth() / 8;
  int64_t bytes = matrix.getDimSize(1) * width;
  SmallVector<int64_t, 2> steps{target.readColumns};
  bool isConvolved =
      convolutions.size() != products.size() ||
      llvm::any_of(convolutions, [](ShortConvOp op) { return bool(op); });
  if (width == 2 && isConvolved)
    steps.push_back(target.readColumns / 2);
  else if (width == 2)
    steps = {1};
  for (int64_t step : steps) {
    int64_t share = 1;
    while (pointsOf(share) > target.processors &&
           share * bytes <= target.shareBytes)
      share += std::min(share, step);
    if (share * bytes <= target.shareBytes)
      return share;
  }
  int64_t tile = target.readColumns;
  while (tile > 1 && (tile * bytes > target.readBytes ||
                      pointsOf(tile) < target.processors))
    tile /= 2;
  return tile;
}

tile::RowProductsShape ProductGroup::shapeOf(bool isConvolved) {
  tile::RowProductsShape shape;
  auto a = cast<RankedTensorType>(rows.getType());
  shape.depth = a.getDimSize(1);
  shape.element = a.getElementType();
  shape.columnTile = columnTile();
  shape.rows = getSizes(a).getResult(0);
  for (auto [product, convolution] : llvm::zip_equal(products, convolutions)) {
    auto c = cast<RankedTensorType>(product.getType());
    bool isHere = isConvolved && convolution;
    shape.matrices.push_back({c.getDimSize(1), c.getElementType(), isHere});
    if (isHere)
      shape.taps = convolution.getWeight().getType().getDimSize(1);
  }
  shape.rowwise = rowwise;
  if (rowwise)
    shape.row = cast<OpResult>(rows).getResultNumber();
  shape.kept = kept;
  shape.isOfLastRows = !lastRows.empty();
  if (attention && attention->numRanges(/*isJoined=*/true) > 1) {
    ArrayRef<int64_t> heads = attention->getOp().getO().getType().getShape();
    shape.ranges = {heads[1], attention->numRanges(/*isJoined=*/true),
                    heads[2]};
  }
  return shape;
}

tile::ProgramOp ProductGroup::makeProgram(bool isConvolved) {
  tile::RowProductsShape shape = shapeOf(isConvolved);
  std::string variant;
  llvm::raw_string_ostream text(variant);
  text << "row_products " << shape.row;
  if (shape.isOfLastRows)
    text << " of last rows";
  for (unsigned n : kept)
    text << " keeps " << n;
  if (shape.ranges.count > 0)
    text << " joins " << shape.ranges.heads << ' ' << shape.ranges.count << ' '
         << shape.ranges.width;
  for (auto [product, matrix] : llvm::zip_equal(products, shape.matrices)) {
    text << ' ' << product.getType();
    if (matrix.isConvolved)
      text << " convolved " << shape.taps;
  }
  text << " of " << products.front().getB().getType();
  return scheduler.programs.get(
      place(), variant, [&](OpBuilder &programs, ModuleOp) -> tile::ProgramOp {
        FailureOr<tile::ProgramOp> built =
            tile::buildRowProducts(programs, location(), shape);
        return succeeded(built) ? *built : tile::ProgramOp();
      });
}

/// What the products give, and what else `replaced` has but states where the
/// convolutions are not done.
SmallVector<Value> ProductGroup::launch(OpBuilder &builder, bool isConvolved) {
  tile::ProgramOp program = makeProgram(isConvolved);
  SmallVector<Value> inputs{rows}, caches;
  if (attention) {
    AttentionStep::Parts parts = attention->launch(builder, /*isJoined=*/true);
    caches = {parts.kCache, parts.vCache};
    inputs = parts.output;
    // Of one range the output is there as it is.
    if (inputs.size() == 1)
      inputs.front() = ReshapeOp::create(builder, location(), rows.getType(),
                                         inputs.front());
  }
  if (rowwise)
    inputs.assign(rowwise->operand_begin(), rowwise->operand_end());
  for (LastRowsOp last : lastRows)
    llvm::replace(inputs, last.getResult(), last.getX());
  if (!lastRows.empty())
    inputs.push_back(lastRows.front().getSegments());
  for (ProductOp product : products)
    inputs.push_back(product.getB());
  SmallVector<Type> types;
  for (Value value : ArrayRef(replaced).take_front(kept.size()))
    types.push_back(value.getType());
  for (ProductOp product : products)
    types.push_back(product.getType());
  SmallVector<int64_t> ties;
  bool hasSegments = false;
  for (ShortConvOp convolution : convolutions) {
    if (!isConvolved || !convolution)
      continue;
    if (!hasSegments)
      inputs.push_back(convolution.getSegments());
    hasSegments = true;
    inputs.push_back(convolution.getWeight());
    llvm::append_values(ties, int64_t(types.size()), int64_t(inputs.size()));
    inputs.push_back(convolution.getState());
    types.push_back(convolution.getState().getType());
  }
  DispatchOp dispatch =
      scheduler.dispatch(builder, location(), program, inputs, types, ties);
  SmallVector<Value> results(dispatch->getResults());
  llvm::append_range(results, caches);
  return results;
}

/// Convolutions are part of the launch where every segment is one row: then the
/// rows before it are in the state.
SmallVector<Value> ProductGroup::atOnce(OpBuilder &builder) {
  if (llvm::none_of(convolutions, [](ShortConvOp op) { return bool(op); }))
    return launch(builder, /*isConvolved=*/false);
  SmallVector<Type> types = llvm::map_to_vector(
      replaced, [](Value value) { return value.getType(); });
  AffineExpr longest = getSymbolExpr(CallSymbol::longest, builder.getContext());
  return SmallVector<Value>(scheduler.either(
      builder, location(), types, 1 - longest,
      [&](OpBuilder &inner) { return launch(inner, /*isConvolved=*/true); },
      [&](OpBuilder &inner) {
        SmallVector<Value> made = launch(inner, /*isConvolved=*/false);
        IRMapping mapping;
        for (auto [n, product] : llvm::enumerate(products))
          mapping.map(product.getResult(), made[kept.size() + n]);
        convolveApart(inner, mapping);
        made.truncate(kept.size());
        for (Value value : ArrayRef(replaced).drop_front(kept.size()))
          made.push_back(mapping.lookup(value));
        return made;
      }));
}

void ProductGroup::convolveApart(OpBuilder &builder, IRMapping &mapping) {
  for (ShortConvOp convolution : convolutions)
    if (convolution)
      copies.push_back(builder.clone(*convolution, mapping));
}

/// Copies of the operations, which are scheduled where they are.
SmallVector<Value> ProductGroup::oneByOne(OpBuilder &builder) {
  IRMapping mapping;
  for (LastRowsOp last : lastRows)
    copies.push_back(builder.clone(*last, mapping));
  if (rowwise)
    copies.push_back(builder.clone(*rowwise, mapping));
  if (attention) {
    attention->clone(builder, mapping, copies);
    copies.push_back(builder.clone(*rows.getDefiningOp(), mapping));
  }
  for (ProductOp product : products)
    copies.push_back(builder.clone(*product, mapping));
  convolveApart(builder, mapping);
  return llvm::map_to_vector(
      replaced, [&](Value value) { return mapping.lookup(value); });
}

void ProductGroup::explain() {
  size_t count = products.size();
  scheduler.chose(
      products.front(), "HYB-S404",
      "up to " + Twine(scheduler.target.readingRows) + " rows read " +
          (count == 1 ? Twine("the matrix") : Twine(count) + " matrices") +
          " in one launch" +
          (rowwise     ? ", which makes the rows"
           : attention ? ", which joins the ranges of keys"
                       : "") +
          ", else one by one",
      "with a state, calls are prefill or decode");
}

LogicalResult ProductGroup::schedule() {
  hoistWeights();
  explain();
  if (!makeProgram(/*isConvolved=*/false))
    return failure();
  OpBuilder builder(place());
  SmallVector<Type> types = llvm::map_to_vector(
      replaced, [](Value value) { return value.getType(); });
  AffineExpr count =
      getSizes(cast<RankedTensorType>(rows.getType())).getResult(0);
  ValueRange made = scheduler.either(
      builder, location(), types, scheduler.target.readingRows - count,
      [&](OpBuilder &inner) { return atOnce(inner); },
      [&](OpBuilder &inner) { return oneByOne(inner); });
  for (auto [value, by] : llvm::zip_equal(replaced, made))
    value.replaceAllUsesWith(by);
  for (ShortConvOp convolution : convolutions)
    if (convolution)
      convolution.erase();
  for (ProductOp product : products)
    product.erase();
  if (rowwise)
    rowwise->erase();
  for (LastRowsOp last : lastRows)
    last->erase();
  if (attention) {
    rows.getDefiningOp()->erase();
    attention->erase();
  }
  return scheduleCopies();
}

LogicalResult ProductGroup::scheduleCopies() {
  for (Operation *copy : copies) {
    LogicalResult scheduled =
        TypeSwitch<Operation *, LogicalResult>(copy)
            .Case<ProductOp, ShortConvOp, AttentionCachedOp, LastRowsOp>(
                [&](auto op) { return scheduleOp(scheduler, op); })
            .Case([](ReshapeOp) { return success(); })
            .Default(
                [&](Operation *op) { return scheduleRowwise(scheduler, op); });
    if (failed(scheduled))
      return failure();
  }
  return success();
}

LogicalResult hybrid::scheduleRowProducts(Scheduler &scheduler, Block &block) {
  if (scheduler.target.readingRows == 0 || block.empty() ||
      !isDecoded(&block.front()))
    return success();
  while (true) {
    auto products = block.getOps<ProductOp>();
    auto next = llvm::find_if(products, readsRows);
    if (next == products.end())
      return success();
    if (failed(ProductGroup(scheduler, *next).schedule()))
      return failure();
  }
}
