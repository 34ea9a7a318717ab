//===- FuseRowwise.cpp - neighbours into row-wise regions -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every operation gets a level: the number of operations that are not row-wise
// on the longest way to it. Neighbours join when they have one level. A way
// that leaves a group passes an operation that is not row-wise, so it comes out
// at a higher level and cannot lead back: groups of one level never wait for
// themselves.
//
//===----------------------------------------------------------------------===//

#include "hybrid/Fuse/Passes.h"

#include "hybrid/Hybrid/HybridOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/EquivalenceClasses.h"

namespace hybrid {
#define GEN_PASS_DEF_HYBRIDFUSEROWWISE
#include "hybrid/Fuse/Passes.h.inc"
} // namespace hybrid

using namespace mlir;
using namespace hybrid;

/// What counts rows: a dynamic leading size. Static tensors are parameters.
static bool hasRows(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() > 0 && tensor.isDynamicDim(0);
}

/// Whether both count the same rows.
static bool haveSameRows(Type a, Type b) {
  return hasRows(a) && hasRows(b) &&
         cast<RankedTensorType>(a).getEncoding() ==
             cast<RankedTensorType>(b).getEncoding();
}

/// Whether the operation may stand in a region. Slices and concatenations may,
/// but are better off as views.
static bool isMember(Operation *op) {
  auto rowwise = dyn_cast<RowwiseOpInterface>(op);
  return rowwise && rowwise.isRowwise() && !isa<SliceOp, ConcatOp>(op) &&
         hasRows(op->getResult(0).getType());
}

static Value throughReshapes(Value value) {
  while (auto reshape = value.getDefiningOp<ReshapeOp>())
    value = reshape.getX();
  return value;
}

namespace {

using Group = SmallVector<Operation *>;

/// What is joined in one function.
class RowwiseFusion {
public:
  explicit RowwiseFusion(Block &block) : block(block) {}

  void run();

  unsigned numRegions = 0;
  unsigned numJoined = 0;
  unsigned numAlone = 0;

private:
  void takeLastRowsFirst();
  void placeCasts();
  void computeLevels();
  void delay();
  void joinNeighbours();
  void peelReshapes(Group &group);
  void outline(const Group &group);
  void explainAlone(Operation *op);

  Block &block;
  llvm::DenseMap<Operation *, int64_t> levels;
  llvm::EquivalenceClasses<Operation *> classes;
};

} // namespace

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

/// Whether it makes a wider tensor than it reads.
static bool widens(CastOp cast) {
  return cast.getX().getType().getElementTypeBitWidth() <
         cast.getResult().getType().getElementTypeBitWidth();
}

/// The loss head rounds its gradient itself where only the rounded one is read.
static bool foldIntoProducer(CastOp cast) {
  auto producer = cast.getX().getDefiningOp<CrossEntropyGradOp>();
  if (!producer || !producer->hasOneUse() || widens(cast))
    return false;
  producer.getDlogits().setType(cast.getResult().getType());
  cast.replaceAllUsesWith(producer.getDlogits());
  cast.erase();
  return true;
}

/// Every reader of a widened tensor widens it itself, so that no wide copy is
/// stored for readers in several regions.
void RowwiseFusion::placeCasts() {
  for (auto cast : llvm::make_early_inc_range(block.getOps<CastOp>())) {
    if (foldIntoProducer(cast) || !isMember(cast) || !widens(cast))
      continue;
    llvm::SetVector<Operation *> users(llvm::from_range, cast->getUsers());
    for (Operation *user : ArrayRef(users.getArrayRef()).drop_back()) {
      OpBuilder builder(user);
      user->replaceUsesOfWith(cast, builder.clone(*cast)->getResult(0));
    }
  }
}

//===----------------------------------------------------------------------===//
// Last rows
//===----------------------------------------------------------------------===//

/// The sum or cast of its operands' last rows, in place of the last rows of
/// what it gives; null where it is something else, such as an operation that
/// asks where its rows stand, or where others read all its rows.
static Operation *onLastRows(LastRowsOp last) {
  Operation *op = last.getX().getDefiningOp();
  if (!isa_and_nonnull<AddOp, CastOp>(op) || !isMember(op) || !op->hasOneUse())
    return nullptr;
  OpBuilder builder(last);
  IRMapping lastOf;
  for (Value operand : op->getOperands())
    if (hasRows(operand.getType()))
      lastOf.map(operand, LastRowsOp::create(builder, last.getLoc(), operand,
                                             last.getSegments())
                              .getResult());
  Operation *moved = builder.clone(*op, lastOf);
  moved->getResult(0).setType(last.getType());
  last.replaceAllUsesWith(moved->getResult(0));
  last.erase();
  op->erase();
  return moved;
}

/// Fewer rows to work on, and the last residual joins the norm in front of the
/// head.
void RowwiseFusion::takeLastRowsFirst() {
  SmallVector<LastRowsOp> waiting(block.getOps<LastRowsOp>());
  while (!waiting.empty())
    if (Operation *moved = onLastRows(waiting.pop_back_val()))
      for (Value operand : moved->getOperands())
        if (auto last = operand.getDefiningOp<LastRowsOp>())
          waiting.push_back(last);
}

//===----------------------------------------------------------------------===//
// Levels and groups
//===----------------------------------------------------------------------===//

static bool isComputedAgain(Operation *op) {
  return op->hasAttr("hybrid.recompute");
}

/// Whether what is computed again starts from narrow tensors, so that it costs
/// no memory to wait for its users.
static bool isNarrow(Block &block) {
  return llvm::any_of(block.getOps<CastOp>(), widens);
}

void RowwiseFusion::computeLevels() {
  int64_t reached = 0;
  const bool waits = isNarrow(block);
  for (Operation &op : block) {
    // What is computed again stays behind what came before it: joined with the
    // first computation, from the same rows, it would be kept instead. Where it
    // waits for its users (see below), that is done.
    bool staysBehind = isComputedAgain(&op) && !(waits && isMember(&op));
    int64_t level = staysBehind ? reached : 0;
    for (Value operand : op.getOperands())
      if (Operation *producer = operand.getDefiningOp())
        level = std::max(level, levels.lookup(producer));
    if (!isMember(&op))
      ++level;
    levels[&op] = level;
    reached = std::max(reached, level);
  }
}

/// Bits of a row.
static int64_t rowSize(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  int64_t size = tensor.getElementTypeBitWidth();
  for (int64_t dim : tensor.getShape().drop_front())
    size *= dim;
  return size;
}

/// Whether a region that has to load the result may as well load what the
/// operation reads: rows of at most the result's size, or none. For sums of
/// narrow rows it is twice that: the wide result is then neither stored nor
/// loaded.
static bool isFreeToJoin(Operation *op) {
  int64_t read = 0, most = rowSize(op->getResult(0).getType());
  for (Value operand : op->getOperands()) {
    if (!hasRows(operand.getType()) || operand.getDefiningOp<FillOp>())
      continue;
    auto cast = operand.getDefiningOp<CastOp>();
    bool isWidened = cast && isMember(cast) && widens(cast);
    read += rowSize(isWidened ? cast.getX().getType() : operand.getType());
    if (isWidened)
      most = 2 * rowSize(op->getResult(0).getType());
  }
  return read <= most;
}

/// Operations that are free to join wait for the first of their users, if that
/// can be joined; what is computed again from narrow tensors waits in any case,
/// as far from the first computation as it can be.
void RowwiseFusion::delay() {
  const bool waits = isNarrow(block);
  for (Operation &op : llvm::reverse(block)) {
    bool isAgain = waits && isComputedAgain(&op);
    if (!isMember(&op) || op.use_empty() || !(isAgain || isFreeToJoin(&op)))
      continue;
    int64_t needed = std::numeric_limits<int64_t>::max(), joined = needed;
    for (Operation *user : op.getUsers()) {
      needed = std::min(needed, levels[user] - (isMember(user) ? 0 : 1));
      if (isMember(user))
        joined = std::min(joined, levels[user]);
    }
    if (isAgain || joined == needed)
      levels[&op] = needed;
  }
}

void RowwiseFusion::joinNeighbours() {
  // The first member of a level that reads some rows.
  llvm::DenseMap<std::pair<Value, int64_t>, Operation *> readers;
  for (Operation &op : block) {
    if (!isMember(&op))
      continue;
    classes.insert(&op);
    Type rows = op.getResult(0).getType();
    for (Value operand : op.getOperands()) {
      if (!haveSameRows(operand.getType(), rows))
        continue;
      Operation *producer = operand.getDefiningOp();
      if (producer && isMember(producer) && levels[producer] == levels[&op]) {
        classes.unionSets(producer, &op);
        continue;
      }
      auto [reader, isFirst] =
          readers.try_emplace({throughReshapes(operand), levels[&op]}, &op);
      if (!isFirst &&
          haveSameRows(reader->second->getResult(0).getType(), rows))
        classes.unionSets(reader->second, &op);
    }
  }
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

/// Takes reshapes at the edge out of the group. A value that other members read
/// too keeps its reshapes inside, so that it is loaded once.
void RowwiseFusion::peelReshapes(Group &group) {
  llvm::SmallPtrSet<Operation *, 16> inside(llvm::from_range, group);
  auto isReadByOthers = [&](Value value) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      return inside.contains(user) && !isa<ReshapeOp>(user);
    });
  };
  for (Operation *op : group)
    if (auto reshape = dyn_cast<ReshapeOp>(op))
      if (Operation *producer = reshape.getX().getDefiningOp();
          (!producer || !inside.contains(producer)) &&
          !isReadByOthers(reshape.getX()))
        inside.erase(op);
  for (Operation *op : llvm::reverse(group)) {
    auto reshape = dyn_cast<ReshapeOp>(op);
    if (!reshape || !inside.contains(op))
      continue;
    auto isOutside = [&](OpOperand &use) {
      return !inside.contains(use.getOwner());
    };
    if (llvm::all_of(op->getUses(), isOutside)) {
      inside.erase(op);
    } else if (llvm::any_of(op->getUses(), isOutside)) {
      // The uses outside look at the source, which the region stores anyway or
      // instead.
      OpBuilder builder(op);
      builder.setInsertionPointAfter(op);
      Operation *view = builder.clone(*op);
      levels[view] = levels[op];
      op->getResult(0).replaceUsesWithIf(view->getResult(0), isOutside);
    }
  }
  llvm::erase_if(group, [&](Operation *op) { return !inside.contains(op); });
}

/// Operations between `first` and `region` that need the region move behind it.
static void moveUsersBehind(Operation *first, Operation *region) {
  llvm::SmallPtrSet<Operation *, 16> waiting = {region};
  Operation *last = region;
  for (Operation *op = first; op != region;) {
    Operation *next = op->getNextNode();
    if (llvm::any_of(op->getOperands(), [&](Value operand) {
          return waiting.contains(operand.getDefiningOp());
        })) {
      op->moveAfter(last);
      last = op;
      waiting.insert(op);
    }
    op = next;
  }
}

void RowwiseFusion::outline(const Group &group) {
  llvm::SmallPtrSet<Operation *, 16> inside(llvm::from_range, group);
  llvm::SetVector<Value> inputs, outputs;
  SmallVector<Location> locations;
  for (Operation *op : group) {
    locations.push_back(op->getLoc());
    for (Value operand : op->getOperands())
      if (!inside.contains(operand.getDefiningOp()))
        inputs.insert(operand);
    if (llvm::any_of(op->getUsers(),
                     [&](Operation *user) { return !inside.contains(user); }))
      outputs.insert(op->getResult(0));
  }

  OpBuilder builder(group.back());
  auto region = RowwiseOp::create(builder, builder.getFusedLoc(locations),
                                  TypeRange(ValueRange(outputs.getArrayRef())),
                                  inputs.getArrayRef());
  Block *body = builder.createBlock(&region.getBody());
  IRMapping mapping;
  for (Value input : inputs)
    mapping.map(input, body->addArgument(input.getType(), input.getLoc()));
  // Readers of one tensor have casts of their own; in a region they share one.
  llvm::DenseMap<std::pair<Value, Type>, Value> casts;
  for (Operation *op : group) {
    if (auto cast = dyn_cast<CastOp>(op)) {
      Value &known = casts[{cast.getX(), cast.getType()}];
      if (known) {
        mapping.map(cast.getResult(), known);
        continue;
      }
      known = builder.clone(*op, mapping)->getResult(0);
      continue;
    }
    builder.clone(*op, mapping);
  }
  SmallVector<Value> yielded = llvm::map_to_vector(
      outputs, [&](Value output) { return mapping.lookup(output); });
  YieldOp::create(builder, region.getLoc(), yielded);

  for (auto [index, output] : llvm::enumerate(outputs.takeVector()))
    output.replaceUsesWithIf(region.getResult(index), [&](OpOperand &use) {
      return !inside.contains(use.getOwner());
    });
  Operation *first = group.front()->getPrevNode();
  for (Operation *op : llvm::reverse(group))
    op->erase();
  moveUsersBehind(first ? first->getNextNode() : &block.front(), region);
}

//===----------------------------------------------------------------------===//
// Remarks
//===----------------------------------------------------------------------===//

static std::string listNames(ArrayRef<Operation *> ops) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(ops, stream, [&](Operation *op) {
    stream << op->getName().stripDialect();
  });
  return text;
}

static void explainJoined(const Group &group) {
  auto remark =
      remark::passed(group.front()->getLoc(),
                     remark::RemarkOpts::name("HYB-F101").category("fuse"));
  if (remark)
    remark << "joined " + listNames(group)
           << remark::reason("each operand is loaded once");
}

void RowwiseFusion::explainAlone(Operation *op) {
  // A row-wise producer at a lower level was not joined because another operand
  // comes later.
  for (Value operand : op->getOperands()) {
    Operation *producer = throughReshapes(operand).getDefiningOp();
    if (!producer || !isMember(producer) ||
        !haveSameRows(producer->getResult(0).getType(),
                      op->getResult(0).getType()))
      continue;
    auto remark = remark::missed(
        op->getLoc(), remark::RemarkOpts::name("HYB-F202").category("fuse"));
    if (!remark)
      return;
    std::string between = "another operation";
    for (Value other : op->getOperands())
      if (Operation *later = throughReshapes(other).getDefiningOp();
          later && !isMember(later))
        between = later->getName().stripDialect().str();
    remark << (op->getName().stripDialect() + " did not join " +
               producer->getName().stripDialect())
                  .str()
           << remark::reason("{0} stands between and is not row-wise", between);
    return;
  }
  auto remark = remark::missed(
      op->getLoc(), remark::RemarkOpts::name("HYB-F201").category("fuse"));
  if (remark)
    remark << (op->getName().stripDialect() + " is alone").str()
           << remark::reason("no neighbour is row-wise");
}

void RowwiseFusion::run() {
  takeLastRowsFirst();
  placeCasts();
  computeLevels();
  delay();
  joinNeighbours();

  llvm::MapVector<Operation *, Group> groups;
  for (Operation &op : block)
    if (isMember(&op))
      groups[classes.getLeaderValue(&op)].push_back(&op);
  for (auto &[leader, group] : groups) {
    // Regions made before have moved operations.
    llvm::sort(group, [](Operation *a, Operation *b) {
      return a->isBeforeInBlock(b);
    });
    peelReshapes(group);
    if (group.size() == 1) {
      explainAlone(group.front());
      ++numAlone;
    }
    if (group.size() < 2)
      continue;
    explainJoined(group);
    outline(group);
    ++numRegions;
    numJoined += group.size();
  }
}

namespace {
struct FuseRowwise : public hybrid::impl::HybridFuseRowwiseBase<FuseRowwise> {
  using HybridFuseRowwiseBase::HybridFuseRowwiseBase;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      // Other functions hold no graph operations.
      if (!function->hasAttr("hybrid.entry"))
        continue;
      RowwiseFusion fusion(function.getBody().front());
      fusion.run();
      numRegions += fusion.numRegions;
      numJoined += fusion.numJoined;
      numAlone += fusion.numAlone;
    }
  }
};
} // namespace
