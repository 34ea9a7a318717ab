//===- GpuBuilder.h - building the body of one kernel -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What one thread does, in `arith` and `llvm` on scalars. What LLVM has no
// instruction for is an intrinsic; accesses under a predicate are inline PTX,
// because a branch for each of them would cost more than the access.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TARGET_NVPTX_GPUBUILDER_H
#define HYBRID_LIB_TARGET_NVPTX_GPUBUILDER_H

#include "Layout.h"

#include "hybrid/Target/Storage.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace hybrid::nvptx {

/// Address spaces of LLVM's NVPTX.
inline constexpr unsigned kGlobalSpace = 1, kSharedSpace = 3;

class GpuBuilder : public mlir::ImplicitLocOpBuilder {
public:
  using Values = llvm::SmallVector<mlir::Value>;

  GpuBuilder(mlir::Location loc, mlir::OpBuilder &builder)
      : ImplicitLocOpBuilder(loc, builder) {}

  // Integers; constants are folded.
  mlir::Value i32(int64_t value);
  mlir::Value i64(int64_t value);
  mlir::Value truth(bool value);
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  /// max.NaN.f32 where the type has it: passes NaN on and takes +0 for more
  /// than -0.
  mlir::Value maximum(mlir::Value x, mlir::Value y);
  mlir::Value both(mlir::Value x, mlir::Value y);
  mlir::Value less(mlir::Value x, mlir::Value y);
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y);
  mlir::Value zero(mlir::Type type);
  /// An `index` as i64.
  mlir::Value fromIndex(mlir::Value index);
  mlir::Value toIndex(mlir::Value integer);
  mlir::Value widen(mlir::Value i32);

  mlir::Value bitcast(mlir::Value value, mlir::Type type);
  /// A bf16 as f32, by its bits: of a word of two that was loaded, each is one
  /// instruction.
  mlir::Value widenBF16(mlir::Value value);
  mlir::Value intrinsic(llvm::StringRef name, mlir::Type result,
                        mlir::ValueRange operands = {});
  mlir::Value field(mlir::Value structure, int64_t position);

  // Place in the block.
  void readThread();
  mlir::Value thread() const { return threadNumber; }
  mlir::Value lane() const { return laneNumber; }
  mlir::Value warp() const { return warpNumber; }
  mlir::Value block() const { return blockNumber; }
  /// What this thread's lane and warp add to the coordinates of `layout`, per
  /// dim, as i32.
  Values threadBase(const Layout &layout);
  /// Whether this thread is the first of those that hold the same elements;
  /// null where there are no copies.
  mlir::Value isFirstCopy(const Layout &layout);
  /// The same for warps alone: lanes of a warp that write the same value to the
  /// same place do no harm.
  mlir::Value isFirstWarp(const Layout &layout);

  /// PTX that is neither moved nor left out. Where memory must not be moved
  /// past it, `constraints` end with "~{memory}". Null without a `result`.
  mlir::Value assembly(llvm::StringRef text, llvm::StringRef constraints,
                       mlir::ValueRange operands, mlir::Type result = {});

  // The kernels in front and behind, of which parts may run beside this one.
  /// Until the kernel in front has ended and all it wrote is seen.
  void waitForPredecessor();
  /// The kernel behind may begin once all blocks have passed this.
  void releaseSuccessor();
  /// The same f32, made here: what is computed before a wait does not move
  /// behind it, to where it is used.
  mlir::Value madeHere(mlir::Value value);

  // Exchange.
  void barrier();
  /// The value of the lane whose number differs in the bits of `mask`.
  mlir::Value shuffleXor(mlir::Value value, int64_t mask);
  /// The value of the lane `distance` below or above; the own one where there
  /// is none.
  mlir::Value shuffleUp(mlir::Value value, int64_t distance);
  mlir::Value shuffleDown(mlir::Value value, int64_t distance);

  // Matrix units.
  /// `count` 8 x 8 matrices of 16-bit elements from shared memory, a word of
  /// each: lanes 8n to 8n + 7 give the addresses of the rows of number n.
  Values loadMatrices(mlir::Value address, int64_t count,
                      bool isTransposed = false);
  /// sums + a · b of `mma.sync`, with operands of `element`.
  Values multiplyMatrices(mlir::Type element, mlir::ValueRange a,
                          mlir::ValueRange b, mlir::ValueRange sums);

  // Memory.
  /// `bytes` past `base`.
  mlir::Value address(mlir::Value base, mlir::Value bytes);
  mlir::Value address(mlir::Value base, int64_t bytes);
  /// Consecutive elements, as scalars. The address is aligned to all of them
  /// together, at most 16 bytes.
  Values load(mlir::Type element, int64_t count, mlir::Value address,
              bool invariant = false);
  void store(mlir::ValueRange elements, mlir::Value address);
  /// The same on global memory where `condition` holds; zeros elsewhere.
  Values loadIf(mlir::Value condition, mlir::Type element, int64_t count,
                mlir::Value address, bool invariant);
  void storeIf(mlir::Value condition, mlir::ValueRange elements,
               mlir::Value address);
  /// Starts copying `bytes` (4, 8 or 16) from global to shared memory, of which
  /// only the first `inside` (i32) are read; the rest becomes zero.
  void copyAsync(mlir::Value shared, mlir::Value global, int64_t bytes,
                 mlir::Value inside);
  void commitCopies();
  /// Waits until at most `pending` committed groups of this thread are left.
  void waitForCopies(int64_t pending);

  // Bulk copies, which the copy engine makes (sm_90 and later), and barriers in
  // shared memory that count their bytes.
  /// By one thread: a phase of the barrier ends when `arrivals` threads have
  /// said what they copy and all of it is there.
  void initArrivals(mlir::Value barrier, int64_t arrivals);
  /// Barriers made before are there for the copy engine too.
  void showArrivals();
  /// This thread's arrival, whose copies have `bytes` (i32).
  void expectBytes(mlir::Value barrier, mlir::Value bytes);
  /// Starts copying `bytes`, a multiple of 16 as both addresses are.
  void copyInBulk(mlir::Value shared, mlir::Value global, int64_t bytes,
                  mlir::Value barrier);
  /// Until the phase of that parity (i32), 0 for the first, has ended.
  void waitForArrivals(mlir::Value barrier, mlir::Value parity);

private:
  Values unpack(mlir::ValueRange words, mlir::Type element, int64_t count);
  mlir::Value roundedPair(mlir::Value low, mlir::Value high);
  Values pack(mlir::ValueRange elements);
  mlir::Value shuffle(llvm::StringRef kind, mlir::Value value, int64_t distance,
                      int64_t clamp);

  mlir::Value threadNumber, laneNumber, warpNumber, blockNumber;
};

} // namespace hybrid::nvptx

#endif // HYBRID_LIB_TARGET_NVPTX_GPUBUILDER_H
