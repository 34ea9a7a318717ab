//===- ProductEpilogue.cpp - products with what follows them --------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A row-wise region reads what a product has just written. Where it works
// element by element, or on heads that lie in one tile of columns, the product
// does it with the sums in registers: what only the region reads is never
// stored. Of a region that needs whole rows (a norm) the part in front of that
// is taken, and the region reads its result.
//
//===----------------------------------------------------------------------===//

#include "ProductEpilogue.h"

#include "WarpgroupProduct.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"
#include <numeric>

using namespace mlir;
using namespace hybrid;

/// Products of one region that are one launch: their tiles share registers.
static constexpr size_t kMostMatrices = 2;

static Value throughReshapes(Value value) {
  while (auto reshape = value.getDefiningOp<ReshapeOp>())
    value = reshape.getX();
  return value;
}

static RankedTensorType tensorOf(Value value) {
  return dyn_cast<RankedTensorType>(value.getType());
}

bool hybrid::hasRows(Value value) {
  RankedTensorType type = tensorOf(value);
  return type && type.getRank() > 0 && type.isDynamicDim(0);
}

int64_t hybrid::rowWidth(Value value) {
  ArrayRef<int64_t> sizes = tensorOf(value).getShape().drop_front();
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1),
                         std::multiplies<>());
}

static bool isNarrow(Value value) {
  return getElementTypeOrSelf(value).getIntOrFloatBitWidth() == 16;
}

/// The rows as [rows, width].
static Value asMatrix(OpBuilder &builder, Value value) {
  RankedTensorType type = tensorOf(value);
  if (type.getRank() == 2)
    return value;
  auto flat = RankedTensorType::get({type.getDimSize(0), rowWidth(value)},
                                    type.getElementType(), type.getEncoding());
  return ReshapeOp::create(builder, value.getLoc(), flat, value);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

bool Folding::isProductOfRows(ProductOp product) const {
  RankedTensorType type = tensorOf(product.getResult());
  tile::ProductShape shape;
  shape.columns = type.getDimSize(1);
  shape.depth = tensorOf(product.getA()).getDimSize(1);
  shape.element = getElementTypeOrSelf(product.getA());
  return product->getBlock() == region->getBlock() && type.isDynamicDim(0) &&
         !product.getTransposeA() && isNarrow(product.getResult()) &&
         fitsWarpgroups(product, shape, scheduler.target) &&
         hasAlignedRows(product.getA()) && hasAlignedRows(product.getB());
}

/// The first product, and others of the same rows with as many columns.
bool Folding::findProducts() {
  for (auto [n, operand] : llvm::enumerate(region->getOperands())) {
    auto product = throughReshapes(operand).getDefiningOp<ProductOp>();
    if (!product || !isProductOfRows(product) ||
        products.size() == kMostMatrices)
      continue;
    if (products.empty() ||
        (product.getA() == products.front().getA() &&
         product.getType() == products.front().getType() &&
         product.getTransposeB() == products.front().getTransposeB() &&
         !llvm::is_contained(products, product))) {
      products.push_back(product);
      sums.push_back(n);
    }
  }
  // What is read as a whole is not there yet.
  return llvm::none_of(llvm::enumerate(region->getOperands()),
                       [&](auto each) {
                         Operation *maker =
                             throughReshapes(each.value()).getDefiningOp();
                         return !llvm::is_contained(sums, each.index()) &&
                                llvm::is_contained(products, maker);
                       }) &&
         !products.empty();
}

/// Whether the region alone reads a product, or who else does comes later.
bool Folding::othersReadLater() const {
  for (Operation *product : products)
    for (Operation *user : product->getUsers()) {
      Operation *reader = user;
      // A view is moved behind the launch, if all that reads it is there.
      if (isa<ReshapeOp>(reader)) {
        if (llvm::any_of(reader->getUsers(), [&](Operation *other) {
              Operation *at = region->getBlock()->findAncestorOpInBlock(*other);
              return !at || isa<ReshapeOp>(at) ||
                     (at != region && at->isBeforeInBlock(region));
            }))
          return false;
        continue;
      }
      reader = region->getBlock()->findAncestorOpInBlock(*reader);
      if (!reader || (reader != region && reader->isBeforeInBlock(region)))
        return false;
    }
  return true;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

bool Folding::mayRead(Operation *op, Value operand) const {
  if (members.contains(operand.getDefiningOp()) ||
      isa<SegmentsType>(operand.getType()))
    return true;
  if (!isa<BlockArgument>(operand))
    return false;
  RankedTensorType type = tensorOf(operand),
                   result = tensorOf(op->getResult(0));
  ProductOp sum = products.front();
  if (hasRows(operand))
    return rowWidth(operand) == sum.getType().getDimSize(1);
  // One row, that of all columns.
  return type && result.getRank() == 2 && type.getRank() == 1 &&
         type.getDimSize(0) == result.getDimSize(1);
}

/// Whether the columns of a head lie in one tile, for the copies and stores
/// too.
bool Folding::holdsHeads(RotaryOp rotary) const {
  constexpr int64_t kStored = 32, kPiece = 64;
  int64_t dim = rotary.getType().getDimSize(2);
  return dim % kStored == 0 &&
         std::lcm(dim, kPiece) * int64_t(products.size()) <=
             scheduler.target.warpgroupColumns;
}

bool Folding::mayStand(Operation *op) const {
  auto rotary = dyn_cast<RotaryOp>(op);
  return tile::isEpilogue(op) && (!rotary || holdsHeads(rotary)) &&
         hasRows(op->getResult(0)) &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return mayRead(op, operand); });
}

void Folding::findMembers() {
  for (Operation &op : body.without_terminator()) {
    if (!mayStand(&op))
      continue;
    members.insert(&op);
    if (llvm::any_of(op.getOperands(), [&](Value operand) {
          return isSum(operand) || dependent.contains(operand.getDefiningOp());
        }))
      dependent.insert(&op);
  }
}

void Folding::findOutputs() {
  outputs.clear();
  for (Operation *op : dependent)
    for (Operation *user : op->getUsers())
      if (!dependent.contains(user))
        outputs.insert(op->getResult(0));
}

/// What the rest of the region would read as f32 is left to it.
void Folding::keepNarrowOutputs() {
  findOutputs();
  if (isWhole())
    return;
  while (true) {
    const auto *wide =
        llvm::find_if(outputs, [](Value v) { return !isNarrow(v); });
    if (wide == outputs.end())
      break;
    dependent.remove(wide->getDefiningOp());
    findOutputs();
  }
  // Others are needed where something that stays reads them.
  llvm::SetVector<Operation *> needed(dependent.begin(), dependent.end());
  for (size_t n = 0; n < needed.size(); ++n)
    for (Value operand : needed[n]->getOperands())
      if (members.contains(operand.getDefiningOp()))
        needed.insert(operand.getDefiningOp());
  members.remove_if([&](Operation *op) { return !needed.contains(op); });
}

bool Folding::find() {
  if (!findProducts())
    return false;
  findMembers();
  keepNarrowOutputs();
  // Every product is read by something that moves.
  for (unsigned n : sums)
    if (llvm::none_of(body.getArgument(n).getUsers(), [&](Operation *user) {
          return dependent.contains(user);
        }))
      return false;
  if (outputs.empty() || !othersReadLater())
    return false;
  for (auto [n, product] : llvm::enumerate(products)) {
    auto readers = llvm::to_vector(product->getUsers());
    for (size_t at = 0; at < readers.size(); ++at)
      if (isa<ReshapeOp>(readers[at]))
        llvm::append_range(readers, readers[at]->getUsers());
    bool isOurs = llvm::all_of(readers, [&](Operation *reader) {
      return reader == region || isa<ReshapeOp>(reader);
    });
    // The rest of the region may read it too.
    bool isTaken =
        llvm::all_of(body.getArgument(sums[n]).getUsers(),
                     [&](Operation *user) { return members.contains(user); });
    if (!isOurs || !isTaken)
      kept.push_back(n);
  }
  return isWorthIt();
}

//===----------------------------------------------------------------------===//
// The launch
//===----------------------------------------------------------------------===//

Value Folding::typed(OpBuilder &builder, Value value, Type type) const {
  if (value.getType() == type)
    return value;
  return ReshapeOp::create(builder, value.getLoc(), type, value);
}

/// The members as a region on matrices; a reshape inside says what their rows
/// are.
RowwiseOp Folding::makeEpilogue(OpBuilder &builder) {
  SmallVector<Value> inputs;
  SmallVector<BlockArgument> read;
  for (BlockArgument argument : body.getArguments()) {
    unsigned number = argument.getArgNumber();
    Value operand = region->getOperand(number);
    auto *sum = llvm::find(sums, number);
    bool isRead = llvm::any_of(argument.getUsers(), [&](Operation *user) {
      return members.contains(user);
    });
    if (!isRead)
      continue;
    if (sum != sums.end())
      operand = products[sum - sums.begin()].getResult();
    else if (hasRows(operand))
      operand = asMatrix(builder, operand);
    else if (RankedTensorType row = tensorOf(operand))
      operand = ReshapeOp::create(
          builder, region.getLoc(),
          RankedTensorType::get({1, row.getDimSize(0)}, row.getElementType()),
          operand);
    inputs.push_back(operand);
    read.push_back(argument);
  }
  SmallVector<Type> types;
  for (Value output : outputs) {
    RankedTensorType type = tensorOf(output);
    types.push_back(
        RankedTensorType::get({type.getDimSize(0), rowWidth(output)},
                              type.getElementType(), type.getEncoding()));
  }
  for (unsigned n : kept)
    types.push_back(products[n].getType());
  auto made = RowwiseOp::create(builder, region.getLoc(), types, inputs);
  OpBuilder::InsertionGuard guard(builder);
  Block *block = builder.createBlock(&made.getBody());
  IRMapping mapping;
  SmallVector<Value> sumArguments(sums.size());
  for (auto [argument, input] : llvm::zip_equal(read, inputs)) {
    Value own = block->addArgument(input.getType(), argument.getLoc());
    auto *sum = llvm::find(sums, argument.getArgNumber());
    if (sum != sums.end())
      sumArguments[sum - sums.begin()] = own;
    mapping.map(argument,
                hasRows(own) ? typed(builder, own, argument.getType()) : own);
  }
  for (Operation &op : body.without_terminator())
    if (members.contains(&op))
      builder.clone(op, mapping);
  SmallVector<Value> yielded;
  for (auto [output, type] : llvm::zip(outputs, types))
    yielded.push_back(typed(builder, mapping.lookup(output), type));
  for (unsigned n : kept)
    yielded.push_back(sumArguments[n]);
  YieldOp::create(builder, region.getLoc(), yielded);
  return made;
}

/// What is left of the region, which reads the results that were made.
void Folding::makeRest(OpBuilder &builder, ValueRange made) {
  auto yield = cast<YieldOp>(body.getTerminator());
  llvm::DenseMap<Value, Value> given;
  for (auto [output, value] : llvm::zip(outputs, made))
    given[output] = typed(builder, value, output.getType());
  for (auto [result, yielded] :
       llvm::zip_equal(region->getResults(), yield.getValues()))
    if (Value value = given.lookup(yielded))
      result.replaceAllUsesWith(value);
  // Those results go, and outputs come in.
  SmallVector<Value> inputs(region->getOperands());
  SmallVector<Value> results;
  SmallVector<Type> types;
  SmallVector<unsigned> numbers;
  for (auto [n, yielded] : llvm::enumerate(yield.getValues()))
    if (!given.contains(yielded)) {
      results.push_back(yielded);
      types.push_back(yielded.getType());
      numbers.push_back(n);
    }
  if (results.empty())
    return region.erase();
  for (Value output : outputs)
    inputs.push_back(given.lookup(output));
  auto rest = RowwiseOp::create(builder, region.getLoc(), types, inputs);
  OpBuilder::InsertionGuard guard(builder);
  Block *block = builder.createBlock(&rest.getBody());
  IRMapping mapping;
  for (Value input : inputs)
    block->addArgument(input.getType(), input.getLoc());
  for (BlockArgument argument : body.getArguments())
    mapping.map(argument, block->getArgument(argument.getArgNumber()));
  for (auto [n, output] : llvm::enumerate(outputs))
    mapping.map(output, block->getArgument(body.getNumArguments() + n));
  for (Operation &op : body.without_terminator())
    if (!dependent.contains(&op))
      builder.clone(op, mapping);
  YieldOp::create(builder, region.getLoc(),
                  llvm::map_to_vector(results, [&](Value value) {
                    return mapping.lookup(value);
                  }));
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*block)))
    if (isOpTriviallyDead(&op))
      op.erase();
  for (unsigned n = block->getNumArguments(); n-- > 0;)
    if (block->getArgument(n).use_empty()) {
      block->eraseArgument(n);
      rest->eraseOperand(n);
    }
  for (auto [n, number] : llvm::enumerate(numbers))
    region->getResult(number).replaceAllUsesWith(rest->getResult(n));
  region.erase();
}

tile::ProductShape Folding::shapeOf(RowwiseOp epilogue) const {
  ProductOp first = products.front();
  tile::ProductShape shape;
  shape.columns = first.getType().getDimSize(1);
  shape.depth = tensorOf(first.getA()).getDimSize(1);
  shape.transposeB = first.getTransposeB();
  shape.element = getElementTypeOrSelf(first.getA());
  shape.dynamicSize = getSizes(first.getType()).getResult(0);
  for (ProductOp product : products)
    for (auto [n, operand] : llvm::enumerate(epilogue->getOperands()))
      if (operand == product.getResult())
        shape.epilogue.sums.push_back(n);
  shape.epilogue.region = epilogue;
  return tiledForWarpgroups(shape, scheduler.target,
                            scheduler.target.warpgroupColumns /
                                int64_t(products.size()),
                            tile::epilogueColumns(epilogue));
}

int64_t Folding::idleRows() const {
  const TargetTraits &target = scheduler.target;
  ProductOp first = products.front();
  tile::ProductShape shape;
  shape.columns = first.getType().getDimSize(1);
  shape = tiledForWarpgroups(
      shape, target, target.warpgroupColumns / int64_t(products.size()));
  int64_t tiles = llvm::divideCeil(shape.columns, shape.columnTile);
  return (target.processors - 1) / tiles * shape.rowTile;
}

LogicalResult Folding::apply() {
  OpBuilder builder(region);
  RowwiseOp epilogue = makeEpilogue(builder);
  tile::ProductShape shape = shapeOf(epilogue);
  std::string variant;
  llvm::raw_string_ostream(variant)
      << "epilogue " << products.front().getA().getType() << ' '
      << products.front().getB().getType() << ' ' << shape.transposeB;
  tile::ProgramOp program = scheduler.programs.get(
      epilogue, variant, [&](OpBuilder &programs, ModuleOp) {
        tile::ProgramOp built =
            tile::buildProduct(programs, products.front().getLoc(), shape);
        recordProduct(built, shape, scheduler.target);
        return built;
      });
  if (!program)
    return failure();
  ++scheduler.numEpilogues;
  scheduler.chose(
      products.front(), "HYB-S405",
      "blocks of " + Twine(shape.rowTile) + " x " + Twine(shape.columnTile) +
          " for warpgroups, with " + Twine(members.size()) +
          " row-wise operations on the sums",
      Twine(savedBytes()) + " bytes of a row are not written and read again");
  SmallVector<Value> inputs{products.front().getA()};
  for (ProductOp product : products)
    inputs.push_back(product.getB());
  for (auto [n, operand] : llvm::enumerate(epilogue->getOperands()))
    if (!llvm::is_contained(shape.epilogue.sums, n))
      inputs.push_back(operand);
  DispatchOp dispatch =
      scheduler.dispatch(builder, products.front().getLoc(), program, inputs,
                         epilogue->getResultTypes());
  epilogue.erase();
  makeRest(builder, dispatch->getResults().take_front(outputs.size()));
  for (auto [n, product] : llvm::enumerate(products)) {
    const auto *own = llvm::find(kept, n);
    // Views of it that the region read.
    for (Operation *user : llvm::make_early_inc_range(product->getUsers())) {
      if (!isa<ReshapeOp>(user))
        continue;
      if (user->use_empty())
        user->erase();
      else if (user->isBeforeInBlock(dispatch))
        user->moveAfter(dispatch);
    }
    if (own != kept.end())
      product.getResult().replaceAllUsesWith(
          dispatch->getResult(outputs.size() + (own - kept.begin())));
    product.erase();
  }
  return success();
}

/// Of what no other operand and no other reader is part.
static LogicalResult scheduleDecoded(Scheduler &scheduler, Block &block) {
  for (auto region : llvm::make_early_inc_range(block.getOps<RowwiseOp>())) {
    Folding folding(scheduler, region);
    if (!folding.find() || !folding.standsAlone())
      continue;
    if (failed(scheduleDecodedEpilogue(scheduler, region, folding)))
      return failure();
  }
  return success();
}

LogicalResult hybrid::scheduleEpilogues(Scheduler &scheduler,
                                        func::FuncOp function) {
  Block &block = function.getBody().front();
  if (!scheduler.writesRecords || scheduler.target.warpgroups == 0 ||
      block.empty())
    return success();
  if (isDecoded(&block.front()))
    return scheduleDecoded(scheduler, block);
  for (auto region : llvm::make_early_inc_range(block.getOps<RowwiseOp>())) {
    Folding folding(scheduler, region);
    if (folding.find() && failed(folding.apply()))
      return failure();
  }
  return success();
}
