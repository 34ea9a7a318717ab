//===- ThreadBlock.cpp - one simulated thread block
//-----------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ThreadBlock.h"
#include "Interpreter.h"
#include "SharedMemorySim.h"

#include "../../../../../lib/Target/NVPTX/Hopper/KernelEmitter.h"
#include "llvm/ADT/APFloat.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::hopper;
using namespace hybrid::hopper::sim;

static const llvm::fltSemantics &semanticsOf(Type element) {
  return cast<FloatType>(element).getFloatSemantics();
}

uint16_t sim::encode(Type element, double value) {
  llvm::APFloat number(value);
  bool loses;
  number.convert(semanticsOf(element), llvm::APFloat::rmNearestTiesToEven,
                 &loses);
  return uint16_t(number.bitcastToAPInt().getZExtValue());
}

double sim::decode(Type element, uint16_t bits) {
  if (element.isBF16()) {
    uint32_t wide = uint32_t(bits) << 16;
    float number;
    std::memcpy(&number, &wide, sizeof number);
    return number;
  }
  llvm::APFloat number(semanticsOf(element), llvm::APInt(16, bits));
  return number.convertToDouble();
}

ThreadBlock::ThreadBlock(KernelOp kernel, ArrayRef<tile::HostView> arguments,
                         const Place &place, const Policy &policy)
    : kernel(kernel), policy(policy), place(place), random(policy.seed) {
  for (auto [argument, view] : llvm::zip_equal(kernel.getViews(), arguments))
    views[argument] = view;
}

void ThreadBlock::declare() {
  int64_t bytes = 0;
  for (Operation &op : kernel.getBlock()) {
    if (auto map = dyn_cast<TensorMapOp>(op)) {
      maps[map.getMap()] = map.getView();
    } else if (auto made = dyn_cast<AllocateOp>(op)) {
      BufferType type = made.getBuffer().getType();
      addresses[made.getBuffer()] = bytes;
      bytes += type.getCopies() * type.getCopyBytes();
      bytes = (bytes + 1023) / 1024 * 1024;
      copies[made.getBuffer()].resize(type.getCopies());
    } else if (auto made = dyn_cast<MakeBarriersOp>(op)) {
      Barrier barrier{int64_t(made.getArrivals()), int64_t(made.getArrivals())};
      phases[made.getBarriers()].assign(made.getBarriers().getType().getCount(),
                                        barrier);
    }
  }
  memory.assign(bytes / 2, 0x7fc0); // NaN
}

//===----------------------------------------------------------------------===//
// Who runs
//===----------------------------------------------------------------------===//

void ThreadBlock::fail(Operation *op, const std::string &text) {
  if (fault.empty()) {
    llvm::raw_string_ostream stream(fault);
    stream << text << " at ";
    op->print(stream, OpPrintingFlags().skipRegions());
  }
}

bool ThreadBlock::pass(Agent &agent, std::function<bool()> ready) {
  std::unique_lock<std::mutex> lock(mutex);
  agent.canGoOn = std::move(ready);
  running = nullptr;
  turn.notify_all();
  turn.wait(lock, [&] { return running == &agent; });
  return fault.empty();
}

void ThreadBlock::work(Agent &agent) {
  {
    std::unique_lock<std::mutex> lock(mutex);
    turn.wait(lock, [&] { return running == &agent; });
  }
  if (fault.empty())
    Interpreter(*this, agent).run();
  std::unique_lock<std::mutex> lock(mutex);
  agent.isDone = true;
  running = nullptr;
  turn.notify_all();
}

Agent *ThreadBlock::choose() {
  SmallVector<Agent *> able;
  for (auto &agent : agents)
    if (!agent->isDone && (!fault.empty() || agent->canGoOn()))
      able.push_back(agent.get());
  if (able.empty())
    return nullptr;
  switch (policy.choice) {
  case Policy::Choice::FirstRole:
    return able.front();
  case Policy::Choice::LastRole:
    return able.back();
  case Policy::Choice::Random:
    break;
  }
  return able[random() % able.size()];
}

/// One event; products of a warpgroup happen in their order.
bool ThreadBlock::letHappen() {
  if (events.empty())
    return false;
  size_t number =
      policy.events == Policy::Events::Random ? random() % events.size() : 0;
  if (events[number].owner)
    for (size_t n = 0; n < number; ++n)
      if (events[n].owner == events[number].owner) {
        number = n;
        break;
      }
  Event event = std::move(events[number]);
  events.erase(events.begin() + number);
  event.happen();
  return true;
}

void ThreadBlock::schedule() {
  for (;;) {
    bool isOver = true;
    for (auto &agent : agents)
      isOver &= agent->isDone;
    if (isOver)
      return;
    if (fault.empty()) {
      if (policy.events == Policy::Events::Early)
        while (letHappen())
          ;
      else if (policy.events == Policy::Events::Random && random() % 3 == 0)
        letHappen();
    }
    Agent *next = choose();
    while (!next && letHappen())
      next = choose();
    if (!next) {
      fault = "deadlock: no role can go on";
      continue;
    }
    std::unique_lock<std::mutex> lock(mutex);
    running = next;
    turn.notify_all();
    turn.wait(lock, [&] { return !running; });
  }
}

std::string ThreadBlock::run() {
  declare();
  auto roles = cast<RolesOp>(kernel.getBlock().getTerminator());
  Agent outside;
  outside.body = &kernel.getBlock();
  Interpreter(*this, outside).run();
  shared = outside.values;
  for (auto [number, body] : llvm::enumerate(roles.getBodies())) {
    bool single = roles.getSingle()[number];
    int64_t count = single ? 1 : roles.getWarpgroups()[number];
    for (int64_t warpgroup = 0; warpgroup < count; ++warpgroup) {
      auto agent = std::make_unique<Agent>();
      agent->body = &body.front();
      agent->role = number;
      agent->warpgroup = warpgroup;
      agent->threads = single ? 1 : kWarpgroupThreads;
      agent->values = shared;
      agent->canGoOn = [] { return true; };
      agents.push_back(std::move(agent));
    }
  }
  for (auto &agent : agents)
    agent->thread = std::thread([this, &agent] { work(*agent); });
  schedule();
  for (auto &agent : agents)
    agent->thread.join();
  if (fault.empty() && !events.empty())
    fault = "the block ends while copies or products still run";
  return fault;
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

void Knowledge::learn(const Knowledge &other) {
  auto raise = [](auto &own, const auto &more) {
    for (auto &[key, number] : more)
      own[key] = std::max(own[key], number);
  };
  raise(fills, other.fills);
  raise(reads, other.reads);
  raise(clears, other.clears);
}

void ThreadBlock::endPhase(Barrier &barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0)
    return;
  barrier.published.learn(barrier.collected);
  ++barrier.phase;
  barrier.pending = barrier.arrivals;
}

void ThreadBlock::arriveAt(Operation *op, Barrier &barrier, int64_t count) {
  if (count > barrier.pending)
    return fail(op, "more arrivals than the phase has");
  barrier.pending -= count;
  endPhase(barrier);
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void ThreadBlock::startCopy(Agent &agent, TensorLoadOp load) {
  BufferType type = load.getBuffer().getType();
  int64_t copy = agent.values[load.getCopy()].integer();
  Barrier &barrier =
      barrierOf(load.getBarriers(), agent.values[load.getBarrier()].integer());
  CopyState &state = copyOf(load.getBuffer(), copy);
  if (state.writing)
    return fail(load, "two copies write the same place");
  for (auto &[reader, count] : state.reads)
    if (agent.knowledge.reads[{&state, reader}] < count)
      return fail(load, "a copy overwrites what a product still reads");
  ++state.writing;
  int64_t number = ++state.fills;
  SmallVector<int64_t> base;
  for (Value at : load.getIndices())
    base.push_back(agent.values[at].integer());
  tile::HostView view = views[maps[load.getMap()]];
  int64_t start = addresses[load.getBuffer()] + copy * type.getCopyBytes();
  auto happen = [=, &barrier, &state]() mutable {
    for (int64_t row = 0; row < type.getRows(); ++row)
      for (int64_t column = 0; column < type.getColumns(); ++column) {
        int64_t offset = view.offset;
        bool isInside = true;
        for (auto [dim, at] : llvm::enumerate(base)) {
          int64_t place = at;
          place += int64_t(dim) == load.getDims()[0]   ? row
                   : int64_t(dim) == load.getDims()[1] ? column
                                                       : 0;
          isInside &= place >= 0 && place < view.sizes[dim];
          offset += place * view.strides[dim];
        }
        int64_t panel = column / BufferType::kPanelColumns;
        int64_t at = boxAddress(start + panel * type.getPanelBytes(), row,
                                column % BufferType::kPanelColumns);
        word(at) =
            encode(type.getElementType(), isInside ? view.memory[offset] : 0.0);
      }
    --state.writing;
    barrier.collected.fills[&state] = number;
    barrier.bytes -= type.getCopyBytes();
    if (barrier.bytes < 0)
      return fail(load, "more bytes written than announced");
    endPhase(barrier);
  };
  events.push_back({nullptr, 0, happen});
}

void ThreadBlock::clearRows(Agent &agent, ClearRowsOp clear) {
  BufferType type = clear.getBuffer().getType();
  int64_t copy = agent.values[clear.getCopy()].integer();
  CopyState &state = copyOf(clear.getBuffer(), copy);
  if (state.writing || state.reading)
    return fail(clear, "rows are cleared while a copy or a product uses them");
  state.cleared[&agent] = state.fills;
  agent.knowledge.clears[{&state, &agent}] = state.fills;
  int64_t start = addresses[clear.getBuffer()] + copy * type.getCopyBytes();
  for (int64_t row = agent.values[clear.getFirst()].integer();
       row < type.getRows(); ++row)
    for (int64_t panel = 0; panel < type.getPanels(); ++panel)
      for (int64_t byte = 0; byte < 128; byte += 2)
        word(start + panel * type.getPanelBytes() + row * 128 + byte) = 0;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Reads operands as the instructions do: a descriptor per 16 of the depth.
static double elementAt(const std::vector<uint16_t> &memory, Type element,
                        int64_t address, const OperandWalk &walk, int64_t index,
                        int64_t depth) {
  uint64_t bits = uint64_t(address >> 4 & 0x3fff) |
                  uint64_t(descriptorBits(walk.leadingBytes, walk.strideBytes));
  bits += uint64_t(walk.stepOffset(depth / kStepDepth)) >> 4;
  Descriptor descriptor(bits);
  int64_t at = descriptor.address(index, depth % kStepDepth, walk.isTransposed);
  return decode(element, memory[at / 2]);
}

/// Whether the agent knows that the copy is there, and that the warpgroups of
/// its role have cleared their shares of its rows where rows were cleared.
bool ThreadBlock::mayRead(Agent &agent, ProductOp product, CopyState &state) {
  if (state.writing || state.fills == 0 ||
      agent.knowledge.fills[&state] < state.fills) {
    fail(product, "a product reads what has not arrived");
    return false;
  }
  bool isCleared = false;
  for (auto &[other, filling] : state.cleared)
    isCleared |= filling == state.fills;
  if (!isCleared)
    return true;
  for (auto &other : agents)
    if (other->role == agent.role &&
        agent.knowledge.clears[{&state, other.get()}] < state.fills) {
      fail(product, "a product reads cleared rows without a barrier");
      return false;
    }
  return true;
}

void ThreadBlock::startProduct(Agent &agent, ProductOp product) {
  Datum left = agent.values[product.getA()],
        right = agent.values[product.getB()];
  SmallVector<CopyState *> read;
  for (const Datum &operand : {left, right}) {
    if (!operand.buffer)
      continue;
    CopyState &state = copyOf(operand.buffer, operand.copy);
    if (!mayRead(agent, product, state))
      return;
    ++state.reading;
    read.push_back(&state);
    agent.openReads.push_back({agent.group, &state, ++state.reads[&agent]});
  }
  Datum sum;
  if (product.getAcc())
    sum = agent.values[product.getAcc()];
  if (std::max(left.written, sum.written) > agent.fenced)
    return fail(product, "a product without a fence after its registers");
  FlightType type = product.getResult().getType();
  MatrixType matrix = product.getB().getType();
  bool isTransposed = product.getTransposeB();
  OperandWalk rightWalk = OperandWalk::of(matrix.getPanelRows(), !isTransposed);
  int64_t depth = isTransposed ? matrix.getColumns() : matrix.getRows();
  OperandWalk leftWalk{};
  if (left.buffer)
    leftWalk = OperandWalk::of(
        cast<MatrixType>(product.getA().getType()).getPanelRows(),
        product.getTransposeA());
  Datum result;
  result.shape = SmallVector<int64_t, 2>(type.getShape());
  result.tile = std::make_shared<std::vector<double>>(
      kRows * type.getShape()[1], std::nan(""));
  result.landed = std::make_shared<bool>(false);
  ++agent.openGroup;
  int64_t group = agent.group;
  auto happen = [=, &agent] {
    Type element = matrix.getElementType();
    int64_t columns = type.getShape()[1];
    std::vector<double> a(kRows * depth), b(depth * columns);
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t k = 0; k < depth; ++k)
        a[row * depth + k] =
            left.buffer
                ? elementAt(memory, element, left.address, leftWalk, row, k)
                : (*left.tile)[row * depth + k];
    for (int64_t column = 0; column < columns; ++column)
      for (int64_t k = 0; k < depth; ++k)
        b[k * columns + column] =
            elementAt(memory, element, right.address, rightWalk, column, k);
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t column = 0; column < columns; ++column) {
        double total = sum.tile ? (*sum.tile)[row * columns + column] : 0.0;
        for (int64_t k = 0; k < depth; ++k)
          total += a[row * depth + k] * b[k * columns + column];
        (*result.tile)[row * columns + column] = float(total);
      }
    for (CopyState *state : read)
      --state->reading;
    *result.landed = true;
    // Groups end in order, so the last one that has landed says it all.
    agent.landedGroups = std::max(agent.landedGroups, group + 1);
  };
  events.push_back({&agent, group, happen});
  agent.values[product.getResult()] = result;
}
