//===- Interpreter.h - runs tile programs on the host -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TILE_INTERPRETER_H
#define HYBRID_TILE_INTERPRETER_H

#include "hybrid/Tile/TileOps.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/LogicalResult.h"
#include <vector>

namespace hybrid::tile {

/// Host memory behind an argument of a program. Elements are held as double,
/// i32 and i1 exactly; sizes, strides and the offset count elements. Several
/// views may share memory.
struct HostView {
  llvm::MutableArrayRef<double> memory;
  int64_t offset = 0;
  llvm::SmallVector<int64_t, 4> sizes, strides;
};

/// Memory of a contiguous view with a tail of NaN behind it, so that a result
/// which depends on what lies past the end shows it.
class HostBuffer {
public:
  /// `fill` is NaN where the first writer is the program.
  HostBuffer(llvm::ArrayRef<int64_t> sizes, double fill);

  /// A row-major index into the view.
  double &operator()(llvm::ArrayRef<int64_t> index);
  double operator()(llvm::ArrayRef<int64_t> index) const;
  llvm::MutableArrayRef<double> elements() { return {memory.data(), count}; }
  llvm::ArrayRef<double> elements() const { return {memory.data(), count}; }
  llvm::ArrayRef<int64_t> shape() const { return sizes; }
  HostView view();
  /// Whether nothing was written past the end.
  bool tailIsIntact() const;

private:
  std::vector<double> memory;
  size_t count;
  llvm::SmallVector<int64_t, 4> sizes;
};

struct InterpreterOptions {
  /// f64 proves the algorithm; f32 rounds after every operation as a target
  /// would, one order of additions.
  enum class Arithmetic { f64, f32 };
  Arithmetic arithmetic = Arithmetic::f64;
  /// Reports an element that one parallel point writes and another touches.
  bool checkRaces = true;
};

/// Runs `program` over its whole grid. `symbols` are the six symbols of a call
/// in the order of `tile.program`. Every access is checked against the sizes of
/// its view and against its memory; the first fault is reported at its op and
/// ends the run.
llvm::LogicalResult interpret(ProgramOp program, llvm::ArrayRef<HostView> views,
                              llvm::ArrayRef<int64_t> symbols,
                              const InterpreterOptions &options = {});

} // namespace hybrid::tile

#endif // HYBRID_TILE_INTERPRETER_H
