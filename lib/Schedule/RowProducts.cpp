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
#include "hybrid/Tile/Families/RowProducts.h"
#include "hybrid/Tile/Families/Rowwise.h"
#include "mlir/IR/IRMapping.h"

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
  /// The operation in whose place the launches are put.
  Operation *place() { return rowwise ? rowwise : products.front(); }
  /// The first product's: it is what takes time.
  Location location() { return products.front().getLoc(); }
  /// Copies of parameters are places, which may be asked for anywhere.
  void hoistWeights();
  tile::RowProductsShape shapeOf();
  int64_t columnTile();
  tile::ProgramOp makeProgram();
  SmallVector<Value> atOnce(OpBuilder &builder, tile::ProgramOp program);
  SmallVector<Value> oneByOne(OpBuilder &builder);
  void explain();

  Scheduler &scheduler;
  Value rows;
  SmallVector<ProductOp> products;
  Operation *rowwise = nullptr;
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
  for (ProductOp product : products)
    replaced.push_back(product.getResult());
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

void ProductGroup::hoistWeights() {
  for (ProductOp product : products)
    if (auto copy = product.getB().getDefiningOp<CastOp>();
        copy && !copy->isBeforeInBlock(place()))
      copy->moveBefore(place());
}

/// The columns of a point: as many as it can ask for at once, fewer where that
/// leaves processors idle.
int64_t ProductGroup::columnTile() {
  const TargetTraits &target = scheduler.target;
  auto matrix = cast<RankedTensorType>(products.front().getB().getType());
  int64_t bytes = matrix.getDimSize(1) * (matrix.getElementTypeBitWidth() / 8);
  int64_t columns = 0;
  for (ProductOp product : products)
    columns += cast<RankedTensorType>(product.getType()).getDimSize(1);
  int64_t tile = target.readColumns;
  while (tile > 1 && (tile * bytes > target.readBytes ||
                      columns / tile < target.processors))
    tile /= 2;
  return tile;
}

tile::RowProductsShape ProductGroup::shapeOf() {
  tile::RowProductsShape shape;
  auto a = cast<RankedTensorType>(rows.getType());
  shape.depth = a.getDimSize(1);
  shape.element = a.getElementType();
  shape.columnTile = columnTile();
  shape.rows = getSizes(a).getResult(0);
  for (ProductOp product : products) {
    auto c = cast<RankedTensorType>(product.getType());
    shape.matrices.push_back({c.getDimSize(1), c.getElementType()});
  }
  shape.rowwise = rowwise;
  if (rowwise)
    shape.row = cast<OpResult>(rows).getResultNumber();
  shape.kept = kept;
  return shape;
}

tile::ProgramOp ProductGroup::makeProgram() {
  tile::RowProductsShape shape = shapeOf();
  std::string variant;
  llvm::raw_string_ostream text(variant);
  text << "row_products " << shape.row;
  for (unsigned n : kept)
    text << " keeps " << n;
  for (ProductOp product : products)
    text << ' ' << product.getType();
  text << " of " << products.front().getB().getType();
  return scheduler.programs.get(
      place(), variant, [&](OpBuilder &programs, ModuleOp) -> tile::ProgramOp {
        FailureOr<tile::ProgramOp> built =
            tile::buildRowProducts(programs, location(), shape);
        return succeeded(built) ? *built : tile::ProgramOp();
      });
}

SmallVector<Value> ProductGroup::atOnce(OpBuilder &builder,
                                        tile::ProgramOp program) {
  SmallVector<Value> inputs{rows};
  if (rowwise)
    inputs.assign(rowwise->operand_begin(), rowwise->operand_end());
  for (ProductOp product : products)
    inputs.push_back(product.getB());
  SmallVector<Type> types = llvm::map_to_vector(
      replaced, [](Value value) { return value.getType(); });
  DispatchOp dispatch =
      scheduler.dispatch(builder, location(), program, inputs, types);
  return SmallVector<Value>(dispatch->getResults());
}

/// Copies of the operations, which are scheduled where they are.
SmallVector<Value> ProductGroup::oneByOne(OpBuilder &builder) {
  IRMapping mapping;
  if (rowwise)
    copies.push_back(builder.clone(*rowwise, mapping));
  for (ProductOp product : products)
    copies.push_back(builder.clone(*product, mapping));
  return llvm::map_to_vector(
      replaced, [&](Value value) { return mapping.lookup(value); });
}

void ProductGroup::explain() {
  size_t count = products.size();
  scheduler.chose(
      products.front(), "HYB-S404",
      "up to " + Twine(scheduler.target.readingRows) + " rows read " +
          (count == 1 ? Twine("the matrix") : Twine(count) + " matrices") +
          " in one launch" + (rowwise ? ", which makes the rows" : "") +
          ", else one by one",
      "with a state, calls are prefill or decode");
}

LogicalResult ProductGroup::schedule() {
  hoistWeights();
  explain();
  tile::ProgramOp program = makeProgram();
  if (!program)
    return failure();
  OpBuilder builder(place());
  SmallVector<Type> types = llvm::map_to_vector(
      replaced, [](Value value) { return value.getType(); });
  AffineExpr count =
      getSizes(cast<RankedTensorType>(rows.getType())).getResult(0);
  ValueRange made = scheduler.either(
      builder, location(), types, scheduler.target.readingRows - count,
      [&](OpBuilder &inner) { return atOnce(inner, program); },
      [&](OpBuilder &inner) { return oneByOne(inner); });
  for (auto [value, by] : llvm::zip_equal(replaced, made))
    value.replaceAllUsesWith(by);
  for (ProductOp product : products)
    product.erase();
  if (rowwise)
    rowwise->erase();
  for (Operation *copy : copies) {
    auto product = dyn_cast<ProductOp>(copy);
    if (failed(product ? scheduleOp(scheduler, product)
                       : scheduleRowwise(scheduler, copy)))
      return failure();
  }
  return success();
}

LogicalResult hybrid::scheduleRowProducts(Scheduler &scheduler,
                                          func::FuncOp function) {
  Block &block = function.getBody().front();
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
