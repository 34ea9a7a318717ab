//===- Layout.h - which thread holds which element of a tile -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A layout maps (register, lane, warp) to the coordinates of an element. Each
// of the three numbers is written in a mixed radix, its first digit fastest; a
// digit moves along one dim of the tile by its stride, or along none, and then
// threads hold copies. So all that tensor cores, coalesced accesses, reductions
// and broadcasts ask of the placement of a tile is a few small numbers, and
// changes of shape are changes of these numbers.
//
// Lanes and warps are powers of two. A layout may reach past the tile where
// sizes do not divide; elements there have no defined value, and who mixes
// elements (a reduction, a product over its depth, a store) leaves them out.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TARGET_NVPTX_LAYOUT_H
#define HYBRID_LIB_TARGET_NVPTX_LAYOUT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <optional>

namespace hybrid::nvptx {

inline constexpr int64_t kLanes = 32;

/// A digit of a register, lane or warp number.
struct Factor {
  int dim; // kCopies: threads that differ in this digit hold the same elements
  int64_t size, stride;

  bool operator==(const Factor &other) const {
    return dim == other.dim && size == other.size && stride == other.stride;
  }
};

inline constexpr int kCopies = -1;

using Coordinates = llvm::SmallVector<int64_t, 3>;

class Layout {
public:
  using Factors = llvm::SmallVector<Factor, 4>;

  Layout() = default;
  Layout(llvm::ArrayRef<int64_t> shape, Factors registers, Factors lanes,
         Factors warps);

  /// For global memory: runs of up to `vector` elements of the last dim per
  /// thread, neighbouring threads beside each other, warps along the first
  /// dims.
  static Layout blocked(llvm::ArrayRef<int64_t> shape, int64_t warps,
                        int64_t vector = 4);
  /// For sums down the columns of a matrix: runs of up to `vector` rows of a
  /// column per lane, neighbouring lanes below each other, so that a column
  /// lies in one warp.
  static Layout columns(llvm::ArrayRef<int64_t> shape, int64_t warps,
                        int64_t vector);
  /// For running sums along `dim`: a lane holds a run of consecutive elements
  /// of it, and no two warps share a run.
  static Layout scan(llvm::ArrayRef<int64_t> shape, unsigned dim,
                     int64_t warps);

  llvm::ArrayRef<int64_t> getShape() const { return shape; }
  llvm::ArrayRef<Factor> getRegisters() const { return registers; }
  llvm::ArrayRef<Factor> getLanes() const { return lanes; }
  llvm::ArrayRef<Factor> getWarps() const { return warps; }

  int64_t numRegisters() const;
  /// Coordinates of a register of lane 0 of warp 0; the element that another
  /// thread holds there is at these plus `threadBase`.
  Coordinates registerOffset(int64_t reg) const;
  /// What a lane and a warp add to the coordinates of every register.
  Coordinates threadBase(int64_t lane, int64_t warp) const;
  /// The register at an offset that `registerOffset` gives.
  std::optional<int64_t> registerAt(llvm::ArrayRef<int64_t> offset) const;
  /// One past the largest coordinate along a dim; at least its size.
  int64_t extent(unsigned dim) const;
  bool reachesPast(unsigned dim) const { return extent(dim) > shape[dim]; }
  /// How many consecutive registers are consecutive along `dim`.
  int64_t run(unsigned dim) const;
  /// Whether some threads hold copies of the elements of others.
  bool hasCopies() const;
  /// Whether a thread's elements differ from another layout's by registers
  /// alone: lanes and warps step alike.
  bool sameThreads(const Layout &other) const;

  /// Without the dims that have size 1 in `to`: what a tile of that shape needs
  /// so that its broadcast has this layout.
  Layout restricted(llvm::ArrayRef<int64_t> to) const;
  /// Without one dim, which all threads along it have summed.
  Layout reduced(unsigned dim) const;
  /// `size` tiles of this layout along a dim of size 1, all in the registers of
  /// the same threads, beside each other.
  Layout stacked(unsigned dim, int64_t size) const;
  /// Dim d of the result is dim `permutation[d]`.
  Layout permuted(llvm::ArrayRef<int64_t> permutation) const;
  /// The same elements in another row-major shape; none where a digit would
  /// have to move along two dims.
  std::optional<Layout> reshaped(llvm::ArrayRef<int64_t> to) const;

  bool operator==(const Layout &other) const {
    return shape == other.shape && registers == other.registers &&
           lanes == other.lanes && warps == other.warps;
  }
  bool operator!=(const Layout &other) const { return !(*this == other); }

  void print(llvm::raw_ostream &os) const;

private:
  Coordinates shape;
  Factors registers, lanes, warps;
};

/// The accumulator of `mma.sync` m16n8 over a matrix: a thread holds rows g and
/// g + 8, columns 2t and 2t + 1 of each 16 x 8 tile, g = lane / 4, t = lane
/// mod 4. `rowWarps` x `columnWarps` warps hold `rowTiles` x `columnTiles`
/// each.
struct Accumulator {
  int64_t rowTiles, columnTiles, rowWarps, columnWarps;

  /// Divides rows x columns among `warps`. With `wholeRows` warps go to rows as
  /// long as there are any, so that a row lies in one warp; else they share so
  /// that they load the fewest operands.
  static Accumulator divide(int64_t rows, int64_t columns, int64_t warps,
                            bool wholeRows);
  Layout layout(int64_t rows, int64_t columns, int64_t warps) const;
};

inline int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

} // namespace hybrid::nvptx

#endif // HYBRID_LIB_TARGET_NVPTX_LAYOUT_H
