//===- ThreadBlock.h - the state of one simulated thread block -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TEST_UNIT_TARGET_NVPTX_HOPPER_THREADBLOCK_H
#define HYBRID_TEST_UNIT_TARGET_NVPTX_HOPPER_THREADBLOCK_H

#include "Simulator.h"

#include "llvm/ADT/DenseMap.h"
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

namespace hybrid::hopper::sim {

/// A scalar, a tile, or a place in shared memory.
struct Datum {
  double scalar = 0;
  std::shared_ptr<std::vector<double>> tile;
  llvm::SmallVector<int64_t, 2> shape;
  /// When an op that is no product wrote the tile, in steps of its agent.
  int64_t written = 0;
  /// Of a flight: whether it has landed.
  std::shared_ptr<bool> landed;
  /// Of a matrix: address, and the copy it lies in.
  int64_t address = 0;
  mlir::Value buffer;
  int64_t copy = 0;

  int64_t integer() const { return int64_t(scalar); }
};

struct Agent;
struct CopyState;

/// What has surely happened before, as far as an agent or a barrier knows: how
/// often a copy was filled, how many products of an agent that read it have
/// ended, and in which filling an agent has cleared rows. A wait learns what
/// those who arrived knew, so that a run finds a missing wait whatever order it
/// took.
struct Knowledge {
  std::map<CopyState *, int64_t> fills;
  std::map<std::pair<CopyState *, Agent *>, int64_t> reads, clears;

  void learn(const Knowledge &other);
};

/// mbarrier.
struct Barrier {
  int64_t arrivals, pending, bytes = 0, phase = 0;
  Knowledge collected = {}, published = {};
};
struct NamedBarrier {
  int64_t arrived = 0, opened = 0;
  Knowledge collected, published;
};
/// One copy of a buffer.
struct CopyState {
  int64_t writing = 0, reading = 0;
  int64_t fills = 0;
  /// Per agent: products that read it, and the filling whose rows it cleared.
  std::map<Agent *, int64_t> reads, cleared;
};

/// Something that was started and happens later.
struct Event {
  Agent *owner; // of products, whose events happen in order
  int64_t group;
  std::function<void()> happen;
};

struct Agent {
  mlir::Block *body;
  int64_t role, warpgroup, threads;
  llvm::DenseMap<mlir::Value, Datum> values;
  std::function<bool()> canGoOn;
  bool isDone = false;
  int64_t step = 1, fenced = 0, group = 0, landedGroups = 0;
  int64_t openGroup = 0; // products since the last commit
  Knowledge knowledge;
  /// Reads of products that this agent has not waited for: group, copy, number.
  std::vector<std::tuple<int64_t, CopyState *, int64_t>> openReads;
  std::thread thread;
};

/// The grid, and which of the blocks that were started this is.
struct Place {
  llvm::SmallVector<int64_t> sizes;
  int64_t block, blocks;
  int64_t tasks() const {
    int64_t count = 1;
    for (int64_t size : sizes)
      count *= size;
    return count;
  }
};

class ThreadBlock {
public:
  ThreadBlock(KernelOp kernel, llvm::ArrayRef<tile::HostView> views,
              const Place &place, const Policy &policy);
  std::string run();

private:
  friend class Interpreter;

  void declare();
  void work(Agent &agent);
  /// Lets others run until `ready`; false when the run is over.
  bool pass(Agent &agent, std::function<bool()> ready);
  Agent *choose();
  bool letHappen();
  void schedule();
  void fail(mlir::Operation *op, const std::string &text);

  // Ops that others notice.
  void arriveAt(mlir::Operation *op, Barrier &barrier, int64_t count);
  void endPhase(Barrier &barrier);
  Barrier &barrierOf(mlir::Value barriers, int64_t index) {
    return phases[barriers][index];
  }
  CopyState &copyOf(mlir::Value buffer, int64_t copy) {
    return copies[buffer][copy];
  }
  void startCopy(Agent &agent, TensorLoadOp load);
  void startProduct(Agent &agent, ProductOp product);
  bool mayRead(Agent &agent, ProductOp product, CopyState &state);
  void clearRows(Agent &agent, ClearRowsOp clear);
  uint16_t &word(int64_t address) { return memory[address / 2]; }

  KernelOp kernel;
  Policy policy;
  llvm::DenseMap<mlir::Value, tile::HostView> views;
  Place place;
  llvm::DenseMap<mlir::Value, Datum> shared; // values of the kernel's body
  llvm::DenseMap<mlir::Value, int64_t> addresses;
  llvm::DenseMap<mlir::Value, std::vector<CopyState>> copies;
  llvm::DenseMap<mlir::Value, std::vector<Barrier>> phases;
  llvm::DenseMap<mlir::Value, mlir::Value> maps; // to views
  std::map<int64_t, NamedBarrier> named;
  std::vector<uint16_t> memory;
  std::deque<std::unique_ptr<Agent>> agents;
  std::deque<Event> events;
  std::mt19937 random;
  std::string fault;

  std::mutex mutex;
  std::condition_variable turn;
  Agent *running = nullptr; // null: the scheduler
};

/// 16 bits of a number, and back.
uint16_t encode(mlir::Type element, double value);
double decode(mlir::Type element, uint16_t bits);

} // namespace hybrid::hopper::sim

#endif // HYBRID_TEST_UNIT_TARGET_NVPTX_HOPPER_THREADBLOCK_H
