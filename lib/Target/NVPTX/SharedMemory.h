//===- SharedMemory.h - buffers of a block, and who waits for whom -*- C++ -*-//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Code is made in the order of the program, and memory is placed when all of it
// is known. Time is counted in barriers: a buffer lives from the epoch of its
// first access to that of its last, and two buffers may share memory when their
// lives do not meet, because then a barrier lies between them. The same count
// says where a barrier has to be: before an access to what was written, and
// before a write to what was accessed, since the last one.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TARGET_NVPTX_SHAREDMEMORY_H
#define HYBRID_LIB_TARGET_NVPTX_SHAREDMEMORY_H

#include "GpuBuilder.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace hybrid::nvptx {

/// A tile in shared memory: strides in elements, and how far each dim may be
/// accessed. `pointer` may be one of several copies that a pipeline keeps.
struct SharedTile {
  unsigned buffer;
  mlir::Value pointer;
  mlir::Type element;
  Coordinates strides, extents;
  /// Elements that may be accessed at once: fewer where the pointer is not a
  /// multiple of 16 bytes.
  int64_t vector = 8;
  /// Whether the matrix' units of 16 bytes change places within 128, that of
  /// number u of row r being at u xor r mod 8: eight rows' units of one number
  /// are in different banks, and rows stay multiples of 128 bytes. Only copies
  /// to it and products of one row know.
  bool isSwizzled = false;
  /// Of bulk copies to it; null where threads copy.
  mlir::Value arrivals = {};
};

class SharedMemory {
public:
  /// Memory is addressed from `base`, a pointer that dominates all code; so do
  /// the places of buffers, which are filled in by `place`.
  SharedMemory(GpuBuilder &b) : b(b) {}
  void begin(mlir::Value base, mlir::Operation *constantsBefore);

  /// A new buffer and the pointer to it.
  std::pair<unsigned, mlir::Value> allocate(int64_t bytes);

  /// Called before the code that accesses a buffer, or several at once: a
  /// barrier for one of them comes before the accesses to all.
  void reads(llvm::ArrayRef<unsigned> buffers);
  void writes(unsigned buffer);
  void readsAndWrites(unsigned from, unsigned to);
  /// The same for a view of global memory.
  void readsView(mlir::Value view);
  /// `store`, if given, needs no barrier behind stores to other places.
  void writesView(mlir::Value view, mlir::Operation *store = nullptr);
  /// The buffer is written by copies that have begun.
  void writesAsync(unsigned buffer);
  /// The buffer is written by bulk copies that have begun, behind a barrier
  /// that counts their bytes.
  void writesInBulk(unsigned buffer, mlir::Value barrier);
  /// A barrier for bulk copies, which keeps its place through all of the
  /// kernel.
  mlir::Value allocateBarrier();
  /// Whether no barrier has been passed: no buffer has had another's memory.
  bool isFresh() const { return epoch == 0; }
  /// The pipeline that fills the buffer waits by itself; only its life counts.
  void keepAlive(unsigned buffer);

  /// Copies begun so far are waited for with the next group of a pipeline.
  void joinCopies() { copying.clear(); }

  /// A barrier for all that is pending; copies that have begun are waited for
  /// where somebody reads what they bring.
  enum class Copies { pending, done };
  void barrier(Copies copies = Copies::done);
  void flush();
  bool isPending() const;

  /// Around a region that may run any number of times: what is accessed inside
  /// lives through all of it when it is older.
  struct Mark {
    unsigned buffers;
    int64_t epoch;
    llvm::DenseSet<unsigned> copying;
    llvm::MapVector<unsigned, mlir::Value> arriving;
  };
  Mark enter() const {
    return {unsigned(buffers.size()), epoch, copying, arriving};
  }
  bool hadBarrier(const Mark &mark) const { return epoch != mark.epoch; }
  /// On a way around code that had barriers: for what they were for, and for
  /// copies that may have been waited for there.
  void barrierAround(const Mark &mark);
  void leaveLoop(const Mark &mark);

  /// Gives every buffer its place and returns the bytes of all.
  int64_t place();

private:
  struct Buffer {
    int64_t bytes;
    mlir::arith::ConstantOp offset;
    int64_t first = -1, last = -1;
  };
  void touch(unsigned buffer);
  void barrierFor(llvm::ArrayRef<unsigned> buffers);

  GpuBuilder &b;
  mlir::Value base;
  mlir::Operation *constantsBefore = nullptr;
  llvm::SmallVector<Buffer> buffers;
  int64_t epoch = 0;
  llvm::DenseSet<unsigned> read, written, copying;
  /// What bulk copies bring, and the barriers that count their bytes.
  llvm::MapVector<unsigned, mlir::Value> arriving;
  llvm::SmallVector<unsigned> barriers;
  llvm::DenseSet<mlir::Value> viewsRead;
  /// By what each view has been written; null for what may be anywhere.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Operation *, 1>>
      viewsWritten;
};

} // namespace hybrid::nvptx

#endif // HYBRID_LIB_TARGET_NVPTX_SHAREDMEMORY_H
