//===- Interpreter.cpp - the ops of one agent -----------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interpreter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::hopper;
using namespace hybrid::hopper::sim;

void Interpreter::set(Value value, Datum datum) {
  datum.written = agent.step;
  agent.values[value] = std::move(datum);
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

bool Interpreter::runBlock(mlir::Block &ops) {
  for (Operation &op : ops) {
    ++agent.step;
    if (!op.hasTrait<OpTrait::IsTerminator>() && !runOp(&op))
      return false;
  }
  return true;
}

bool Interpreter::runFor(scf::ForOp loop) {
  SmallVector<Datum> carried;
  for (Value init : loop.getInitArgs())
    carried.push_back(get(init));
  int64_t upper = get(loop.getUpperBound()).integer(),
          step = get(loop.getStep()).integer();
  for (int64_t at = get(loop.getLowerBound()).integer(); at < upper;
       at += step) {
    Datum number;
    number.scalar = double(at);
    agent.values[loop.getInductionVar()] = number;
    for (auto [argument, value] :
         llvm::zip_equal(loop.getRegionIterArgs(), carried))
      agent.values[argument] = value;
    if (!runBlock(*loop.getBody()))
      return false;
    carried.clear();
    for (Value value : loop.getBody()->getTerminator()->getOperands())
      carried.push_back(get(value));
  }
  for (auto [result, value] : llvm::zip_equal(loop.getResults(), carried))
    agent.values[result] = value;
  return true;
}

bool Interpreter::runIf(scf::IfOp branch) {
  mlir::Block *chosen = get(branch.getCondition()).scalar != 0
                            ? branch.thenBlock()
                            : branch.elseBlock();
  if (!chosen)
    return true;
  if (!runBlock(*chosen))
    return false;
  for (auto [result, value] : llvm::zip_equal(
           branch.getResults(), chosen->getTerminator()->getOperands()))
    agent.values[result] = get(value);
  return true;
}

bool Interpreter::runOp(Operation *op) {
  for (Value operand : op->getOperands())
    if (isa<RankedTensorType>(operand.getType()) && get(operand).landed)
      return block.fail(op, "a tile is used in flight"), false;
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return runFor(loop);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return runIf(branch);
  if (isa<TensorMapOp, AllocateOp, MakeBarriersOp>(op))
    return true;
  if (isa<HopperDialect>(op->getDialect()))
    return runShared(op);
  return runTile(op);
}

//===----------------------------------------------------------------------===//
// What others notice
//===----------------------------------------------------------------------===//

bool Interpreter::syncAt(Operation *op, int64_t number, int64_t threads,
                         bool waits) {
  NamedBarrier &barrier = block.named[number];
  if (number < 1 || number > 15)
    return block.fail(op, "no such named barrier"), false;
  int64_t opened = barrier.opened;
  barrier.collected.learn(agent.knowledge);
  barrier.arrived += agent.threads;
  if (barrier.arrived > threads)
    return block.fail(op, "more threads than the named barrier has"), false;
  if (barrier.arrived == threads) {
    barrier.arrived = 0;
    ++barrier.opened;
    barrier.published = barrier.collected;
  }
  if (!waits)
    return yield();
  if (!block.pass(agent,
                  [&barrier, opened] { return barrier.opened != opened; }))
    return false;
  agent.knowledge.learn(barrier.published);
  return true;
}

bool Interpreter::runShared(Operation *op) {
  auto integer = [&](Value value) { return get(value).integer(); };
  if (auto id = dyn_cast<IdOp>(op)) {
    Datum datum;
    int64_t task = id.getTask() ? integer(id.getTask()) : block.place.block;
    datum.scalar =
        double(pointOf(block.kernel, block.place.sizes, task)[id.getDim()]);
    return set(id.getResult(), datum), true;
  }
  if (isa<TasksOp, BlockNumberOp, BlockCountOp>(op)) {
    Datum datum;
    datum.scalar = isa<BlockNumberOp>(op)  ? double(block.place.block)
                   : isa<BlockCountOp>(op) ? double(block.place.blocks)
                                           : double(block.place.tasks());
    return set(op->getResult(0), datum), true;
  }
  if (auto number = dyn_cast<WarpgroupOp>(op)) {
    Datum datum;
    datum.scalar = double(agent.warpgroup);
    return set(number.getResult(), datum), true;
  }
  if (auto part = dyn_cast<SubmatrixOp>(op)) {
    BufferType type = part.getBuffer().getType();
    Datum datum;
    datum.buffer = part.getBuffer();
    datum.copy = integer(part.getCopy());
    datum.address = block.addresses[part.getBuffer()] +
                    datum.copy * type.getCopyBytes() +
                    integer(part.getRow()) * 128;
    if (part.getColumn())
      datum.address += integer(part.getColumn()) / 64 * type.getRows() * 128;
    agent.values[part.getMatrix()] = datum;
    return true;
  }
  if (auto start = dyn_cast<AccumulatorOp>(op)) {
    agent.values[start.getFlight()] = get(start.getTile());
    return true;
  }
  if (isa<ProductFenceOp>(op)) {
    agent.fenced = agent.step;
    return true;
  }
  if (isa<ProductCommitOp>(op)) {
    agent.group += agent.openGroup > 0;
    agent.openGroup = 0;
    return yield();
  }
  if (auto product = dyn_cast<ProductOp>(op)) {
    block.startProduct(agent, product);
    return yield();
  }
  if (auto wait = dyn_cast<ProductWaitOp>(op)) {
    int64_t target = agent.group - int64_t(wait.getPending());
    Agent &own = agent;
    if (!block.pass(agent,
                    [&own, target] { return own.landedGroups >= target; }))
      return false;
    for (auto &[group, state, count] : own.openReads)
      if (group < target)
        own.knowledge.reads[{state, &own}] = count;
    llvm::erase_if(own.openReads, [&](const auto &read) {
      return std::get<0>(read) < target;
    });
    for (auto [flight, tile] :
         llvm::zip_equal(wait.getFlights(), wait.getTiles())) {
      Datum datum = get(flight);
      if (datum.landed && !*datum.landed)
        return block.fail(op,
                          "the wait is for fewer products than its operand"),
               false;
      datum.landed = nullptr;
      agent.values[tile] = datum;
    }
    return true;
  }
  if (auto wait = dyn_cast<WaitOp>(op)) {
    Barrier &barrier =
        block.barrierOf(wait.getBarriers(), integer(wait.getIndex()));
    int64_t parity = integer(wait.getParity());
    if (!block.pass(agent, [&barrier, parity] {
          return (barrier.phase & 1) != parity;
        }))
      return false;
    agent.knowledge.learn(barrier.published);
    return true;
  }
  if (auto expect = dyn_cast<ExpectOp>(op)) {
    Barrier &barrier =
        block.barrierOf(expect.getBarriers(), integer(expect.getIndex()));
    barrier.bytes += int64_t(expect.getBytes());
    barrier.collected.learn(agent.knowledge);
    block.arriveAt(op, barrier, 1);
    return yield();
  }
  if (auto arrive = dyn_cast<ArriveOp>(op)) {
    Barrier &barrier =
        block.barrierOf(arrive.getBarriers(), integer(arrive.getIndex()));
    barrier.collected.learn(agent.knowledge);
    block.arriveAt(op, barrier, kWarpgroupThreads / 32);
    return yield();
  }
  if (auto load = dyn_cast<TensorLoadOp>(op)) {
    block.startCopy(agent, load);
    return yield();
  }
  if (auto clear = dyn_cast<ClearRowsOp>(op)) {
    block.clearRows(agent, clear);
    return yield();
  }
  if (auto sync = dyn_cast<SyncOp>(op))
    return syncAt(op, integer(sync.getNumber()), sync.getThreads(), true);
  if (auto signal = dyn_cast<SignalOp>(op))
    return syncAt(op, integer(signal.getNumber()), signal.getThreads(), false);
  return block.fail(op, "the simulator does not know the op"), false;
}

//===----------------------------------------------------------------------===//
// Tiles and scalars
//===----------------------------------------------------------------------===//

static double rounded(Type element, double value) {
  if (element.isF32())
    return float(value);
  if (element.isBF16() || element.isF16())
    return decode(element, encode(element, value));
  // Products of fixed-point numbers wrap.
  if (element.isInteger(32))
    return double(int32_t(int64_t(value)));
  return value;
}

static int64_t sizeOf(ArrayRef<int64_t> shape) {
  int64_t size = 1;
  for (int64_t dim : shape)
    size *= dim;
  return size;
}

std::optional<double> sim::evaluate(Operation *op, ArrayRef<double> x) {
  auto whole = [&](unsigned n) { return int64_t(x[n]); };
  auto quotient = [](int64_t a, int64_t b) {
    int64_t rounded = a / b; // towards zero, like arith's
    return double(rounded);
  };
  if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
    using P = arith::CmpIPredicate;
    switch (compare.getPredicate()) {
    case P::eq:
      return x[0] == x[1];
    case P::ne:
      return x[0] != x[1];
    case P::slt:
    case P::ult:
      return x[0] < x[1];
    case P::sle:
    case P::ule:
      return x[0] <= x[1];
    case P::sgt:
    case P::ugt:
      return x[0] > x[1];
    case P::sge:
    case P::uge:
      return x[0] >= x[1];
    }
  }
  if (auto compare = dyn_cast<arith::CmpFOp>(op)) {
    if (compare.getPredicate() == arith::CmpFPredicate::OEQ)
      return x[0] == x[1];
    if (compare.getPredicate() == arith::CmpFPredicate::OGE)
      return x[0] >= x[1];
    if (compare.getPredicate() == arith::CmpFPredicate::OLE)
      return x[0] <= x[1];
  }
  StringRef name = op->getName().getStringRef();
  using Function = std::function<double()>;
  Function function =
      llvm::StringSwitch<Function>(name)
          .Cases({"arith.addf", "arith.addi"}, [&] { return x[0] + x[1]; })
          .Cases({"arith.subf", "arith.subi"}, [&] { return x[0] - x[1]; })
          .Cases({"arith.mulf", "arith.muli"}, [&] { return x[0] * x[1]; })
          .Case("arith.divf", [&] { return x[0] / x[1]; })
          .Case("arith.negf", [&] { return -x[0]; })
          .Case("arith.maximumf", [&] { return std::max(x[0], x[1]); })
          .Cases({"arith.maxsi", "arith.maxui"},
                 [&] { return std::max(x[0], x[1]); })
          .Cases({"arith.minsi", "arith.minui"},
                 [&] { return std::min(x[0], x[1]); })
          .Cases({"arith.divui", "arith.divsi"},
                 [&] { return quotient(whole(0), whole(1)); })
          .Cases({"arith.remui", "arith.remsi"},
                 [&] { return double(whole(0) % whole(1)); })
          .Case("arith.ceildivsi",
                [&] { return quotient(whole(0) + whole(1) - 1, whole(1)); })
          .Case("arith.andi", [&] { return double(whole(0) & whole(1)); })
          .Case("arith.ori", [&] { return double(whole(0) | whole(1)); })
          .Case("arith.xori", [&] { return double(whole(0) ^ whole(1)); })
          .Case("arith.select", [&] { return x[0] != 0 ? x[1] : x[2]; })
          .Cases({"arith.index_cast", "arith.truncf", "arith.extf",
                  "arith.sitofp"},
                 [&] { return x[0]; })
          .Case("math.absf", [&] { return std::fabs(x[0]); })
          .Case("math.sin", [&] { return std::sin(x[0]); })
          .Case("math.cos", [&] { return std::cos(x[0]); })
          .Case("math.fma", [&] { return std::fma(x[0], x[1], x[2]); })
          .Case("math.exp2", [&] { return std::exp2(x[0]); })
          .Case("math.exp", [&] { return std::exp(x[0]); })
          .Case("math.log", [&] { return std::log(x[0]); })
          .Default(nullptr);
  if (!function)
    return std::nullopt;
  return function();
}

void Interpreter::runElementwise(Operation *op) {
  Value result = op->getResult(0);
  Type element = getElementTypeOrSelf(result.getType());
  auto tile = dyn_cast<RankedTensorType>(result.getType());
  Datum datum;
  int64_t count = 1;
  if (tile) {
    datum.shape = SmallVector<int64_t, 2>(tile.getShape());
    count = tile.getNumElements();
    datum.tile = std::make_shared<std::vector<double>>(count);
  }
  SmallVector<double> operands(op->getNumOperands());
  for (int64_t n = 0; n < count; ++n) {
    for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
      Datum from = get(operand);
      operands[number] = from.tile ? (*from.tile)[n] : from.scalar;
    }
    std::optional<double> value = evaluate(op, operands);
    if (!value)
      return block.fail(op, "the simulator does not know the op");
    (tile ? (*datum.tile)[n] : datum.scalar) = rounded(element, *value);
  }
  set(result, datum);
}

double *Interpreter::elementAt(Operation *op, tile::HostView &view,
                               ValueRange indices, ArrayRef<int64_t> dims,
                               ValueRange limits, ArrayRef<int64_t> at) {
  int64_t offset = view.offset;
  bool isInside = true, isInView = true;
  for (auto [dim, index] : llvm::enumerate(indices)) {
    int64_t place = get(index).integer();
    for (auto [tileDim, viewDim] : llvm::enumerate(dims))
      if (viewDim == int64_t(dim)) {
        place += at[tileDim];
        if (tileDim < limits.size())
          isInside &= place < get(limits[tileDim]).integer();
      }
    isInView &= place >= 0 && place < view.sizes[dim];
    offset += place * view.strides[dim];
  }
  if (!isInside)
    return nullptr;
  if (!isInView)
    return block.fail(op, "an access outside of the view"), nullptr;
  return &view.memory[offset];
}

/// The place of element `n` of a vector or a matrix.
static std::array<int64_t, 2> placeOf(ArrayRef<int64_t> shape, int64_t n) {
  int64_t columns = shape.size() > 1 ? shape[1] : 1;
  return {n / columns, n % columns};
}

void Interpreter::load(tile::LoadOp load) {
  Datum datum;
  datum.shape = SmallVector<int64_t, 2>(load.getTile().getType().getShape());
  datum.tile = std::make_shared<std::vector<double>>(sizeOf(datum.shape), 0.0);
  tile::HostView view = block.views[load.getView()];
  for (auto [n, element] : llvm::enumerate(*datum.tile))
    if (double *from =
            elementAt(load, view, load.getIndices(), load.getDims(),
                      load.getLimits(), placeOf(datum.shape, int64_t(n))))
      element = *from;
  set(load.getTile(), datum);
}

std::vector<double> Interpreter::gathered(tile::LoadRowsOp load) {
  tile::HostView view = block.views[load.getView()];
  Datum rows = get(load.getRows()), mask = get(load.getMask());
  std::vector<double> column(rows.tile->size(), 0.0);
  for (auto [n, element] : llvm::enumerate(column))
    if ((*mask.tile)[n] != 0)
      if (double *from =
              elementAt(load, view, load.getIndices(), load.getDims(),
                        /*limits=*/{}, {int64_t((*rows.tile)[n]), 0}))
        element = *from;
  return column;
}

template <typename Store> void Interpreter::store(Store store) {
  Datum tile = get(store.getTile());
  tile::HostView view = block.views[store.getView()];
  for (auto [n, element] : llvm::enumerate(*tile.tile))
    if (double *to =
            elementAt(store, view, store.getIndices(), store.getDims(),
                      store.getLimits(), placeOf(tile.shape, int64_t(n))))
      *to = isa<tile::AccumulateOp>(store) ? float(*to + element) : element;
}

bool Interpreter::runTile(Operation *op) {
  if (auto dim = dyn_cast<tile::DimOp>(op)) {
    Datum datum;
    datum.scalar = double(block.views[dim.getView()].sizes[dim.getDim()]);
    return set(dim.getResult(), datum), true;
  }
  if (auto load = dyn_cast<tile::LoadScalarOp>(op)) {
    tile::HostView view = block.views[load.getView()];
    int64_t offset = view.offset;
    for (auto [dim, index] : llvm::enumerate(load.getIndices()))
      offset += get(index).integer() * view.strides[dim];
    Datum datum;
    datum.scalar = view.memory[offset];
    return set(load.getValue(), datum), true;
  }
  if (auto put = dyn_cast<tile::StoreOp>(op))
    return store(put), block.fault.empty();
  if (auto sum = dyn_cast<tile::AccumulateOp>(op))
    return store(sum), block.fault.empty();
  if (auto from = dyn_cast<tile::LoadOp>(op))
    return load(from), block.fault.empty();
  Value result = op->getResult(0);
  auto type = dyn_cast<RankedTensorType>(result.getType());
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    Attribute value = constant.getValue();
    auto elements = dyn_cast<DenseElementsAttr>(value);
    if (elements && !elements.isSplat()) {
      Datum datum;
      datum.shape = SmallVector<int64_t, 2>(type.getShape());
      datum.tile = std::make_shared<std::vector<double>>();
      for (const APInt &number : elements.getValues<APInt>())
        datum.tile->push_back(double(number.getSExtValue()));
      return set(result, datum), true;
    }
    if (elements)
      value = elements.getSplatValue<Attribute>();
    double number;
    if (auto real = dyn_cast<FloatAttr>(value))
      number = real.getValueAsDouble();
    else
      number = double(cast<IntegerAttr>(value).getValue().getSExtValue());
    Datum datum;
    datum.scalar = number;
    if (type) {
      datum.shape = SmallVector<int64_t, 2>(type.getShape());
      datum.tile =
          std::make_shared<std::vector<double>>(type.getNumElements(), number);
    }
    return set(result, datum), true;
  }
  if (!isa<tile::TileDialect>(op->getDialect()))
    return runElementwise(op), block.fault.empty();
  Datum datum;
  datum.shape = SmallVector<int64_t, 2>(type.getShape());
  datum.tile =
      std::make_shared<std::vector<double>>(type.getNumElements(), 0.0);
  int64_t columns = datum.shape.size() > 1 ? datum.shape[1] : 1;
  std::vector<double> &to = *datum.tile;
  if (auto splat = dyn_cast<tile::SplatOp>(op)) {
    to.assign(to.size(), get(splat.getScalar()).scalar);
  } else if (auto iota = dyn_cast<tile::IotaOp>(op)) {
    for (int64_t n = 0; n < sizeOf(datum.shape); ++n)
      to[n] = double(iota.getDim() == 0 ? n / columns : n % columns);
  } else if (auto broadcast = dyn_cast<tile::BroadcastOp>(op)) {
    Datum from = get(broadcast.getInput());
    for (int64_t n = 0; n < sizeOf(datum.shape); ++n) {
      int64_t row = from.shape[0] == 1 ? 0 : n / columns,
              column = from.shape[1] == 1 ? 0 : n % columns;
      to[n] = (*from.tile)[row * from.shape[1] + column];
    }
  } else if (auto reduce = dyn_cast<tile::ReduceOp>(op)) {
    Datum from = get(reduce.getInput());
    bool isMax = reduce.getKind() == tile::ReduceKind::max;
    for (int64_t row = 0; row < from.shape[0]; ++row) {
      double total = (*from.tile)[row * from.shape[1]];
      for (int64_t column = 1; column < from.shape[1]; ++column) {
        double next = (*from.tile)[row * from.shape[1] + column];
        total = isMax ? std::max(total, next) : float(total + next);
      }
      to[row] = total;
    }
  } else if (auto slice = dyn_cast<tile::SliceOp>(op)) {
    Datum from = get(slice.getInput());
    for (int64_t n = 0; n < sizeOf(datum.shape); ++n)
      to[n] = (*from.tile)[n / columns * from.shape[1] +
                           int64_t(slice.getOffset()) + n % columns];
  } else if (auto concat = dyn_cast<tile::ConcatOp>(op)) {
    int64_t first = 0;
    for (Value input : concat.getInputs()) {
      Datum from = get(input);
      for (int64_t n = 0; n < sizeOf(from.shape); ++n)
        to[n / from.shape[1] * columns + first + n % from.shape[1]] =
            (*from.tile)[n];
      first += from.shape[1];
    }
  } else if (auto gather = dyn_cast<tile::LoadRowsOp>(op)) {
    to = gathered(gather);
  } else if (auto reshape = dyn_cast<tile::ReshapeOp>(op)) {
    to = *get(reshape.getInput()).tile;
  } else {
    return block.fail(op, "the simulator does not know the op"), false;
  }
  return set(result, datum), true;
}
