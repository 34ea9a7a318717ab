//===- Layout.cpp - which thread holds which element of a tile -----------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <limits>

using namespace hybrid::nvptx;
using llvm::ArrayRef;

/// One way to write a layout: no digit of one value, and no two that are one.
static Layout::Factors canonical(ArrayRef<Factor> factors, bool keepCopies) {
  Layout::Factors result;
  for (Factor factor : factors) {
    if (factor.size == 1 || (factor.dim == kCopies && !keepCopies))
      continue;
    if (factor.dim == kCopies)
      factor.stride = 0;
    Factor *last = result.empty() ? nullptr : &result.back();
    if (last && last->dim == factor.dim &&
        (factor.dim == kCopies || factor.stride == last->stride * last->size))
      last->size *= factor.size;
    else
      result.push_back(factor);
  }
  return result;
}

Layout::Layout(ArrayRef<int64_t> shape, Factors registers, Factors lanes,
               Factors warps)
    : shape(shape), registers(canonical(registers, /*keepCopies=*/false)),
      lanes(canonical(lanes, /*keepCopies=*/true)),
      warps(canonical(warps, /*keepCopies=*/true)) {}

//===----------------------------------------------------------------------===//
// Layouts by purpose
//===----------------------------------------------------------------------===//

namespace {
/// Deals the elements of a tile to digits, the fastest first.
class Dealer {
public:
  explicit Dealer(ArrayRef<int64_t> shape)
      : left(shape), next(shape.size(), 1) {}

  /// A digit of `size` values along `dim`.
  Factor take(unsigned dim, int64_t size) {
    Factor factor{int(dim), size, next[dim]};
    next[dim] *= size;
    left[dim] = ceilDiv(left[dim], size);
    return factor;
  }
  /// As many of `count` threads as `dim` has elements for, rounded up to a
  /// power of two.
  int64_t fitting(unsigned dim, int64_t count) const {
    return std::min<int64_t>(count, llvm::PowerOf2Ceil(left[dim]));
  }
  int64_t leftOf(unsigned dim) const { return left[dim]; }

private:
  Coordinates left, next;
};
} // namespace

Layout Layout::blocked(ArrayRef<int64_t> shape, int64_t warps, int64_t vector) {
  unsigned rank = shape.size();
  Dealer dealer(shape);
  Factors registers, lanes, warpFactors;
  while (shape.back() % vector != 0)
    vector /= 2;
  registers.push_back(dealer.take(rank - 1, vector));
  int64_t lanesLeft = kLanes, warpsLeft = warps;
  for (unsigned dim = rank; dim-- > 0;) {
    int64_t count = dealer.fitting(dim, lanesLeft);
    lanes.push_back(dealer.take(dim, count));
    lanesLeft /= count;
  }
  lanes.push_back({kCopies, lanesLeft, 0});
  for (unsigned dim = 0; dim < rank; ++dim) {
    int64_t count = dealer.fitting(dim, warpsLeft);
    warpFactors.push_back(dealer.take(dim, count));
    warpsLeft /= count;
  }
  warpFactors.push_back({kCopies, warpsLeft, 0});
  for (unsigned dim = rank; dim-- > 0;)
    registers.push_back(dealer.take(dim, dealer.leftOf(dim)));
  return Layout(shape, registers, lanes, warpFactors);
}

Layout Layout::columns(ArrayRef<int64_t> shape, int64_t warps, int64_t vector) {
  Dealer dealer(shape);
  Factor run = dealer.take(0, std::min(vector, shape[0]));
  Factors lanes{dealer.take(0, dealer.fitting(0, kLanes))};
  int64_t lanesLeft = kLanes / lanes.front().size;
  int64_t perWarp =
      ceilDiv(shape[1], warps * std::min<int64_t>(lanesLeft, shape[1]));
  Factor beside = dealer.take(1, perWarp);
  lanes.push_back(dealer.take(1, dealer.fitting(1, lanesLeft)));
  lanes.push_back({kCopies, lanesLeft / lanes.back().size, 0});
  Factors warpFactors{dealer.take(1, dealer.fitting(1, warps))};
  warpFactors.push_back({kCopies, warps / warpFactors.front().size, 0});
  Factors registers{beside, run, dealer.take(0, dealer.leftOf(0)),
                    dealer.take(1, dealer.leftOf(1))};
  return Layout(shape, registers, lanes, warpFactors);
}

Layout Layout::scan(ArrayRef<int64_t> shape, unsigned dim, int64_t warps) {
  Dealer dealer(shape);
  Factors registers, lanes, warpFactors;
  // Other dims first: what is summed apart needs no exchange.
  int64_t lanesLeft = kLanes, warpsLeft = warps;
  int64_t others = 1;
  for (unsigned d = 0; d < shape.size(); ++d)
    others *= d == dim ? 1 : shape[d];
  int64_t apart = std::min<int64_t>(
      kLanes, std::max<int64_t>(1, llvm::PowerOf2Ceil(ceilDiv(others, warps))));
  // A run of at least four elements per lane pays for its exchange.
  int64_t along = std::min<int64_t>(
      kLanes / apart, llvm::PowerOf2Ceil(std::max<int64_t>(shape[dim] / 4, 1)));
  for (unsigned d = shape.size(); d-- > 0;) {
    if (d == dim)
      continue;
    int64_t count = dealer.fitting(d, std::min(apart, lanesLeft));
    lanes.push_back(dealer.take(d, count));
    apart /= count;
    lanesLeft /= count;
  }
  along = std::min(along, lanesLeft);
  registers.push_back(dealer.take(dim, ceilDiv(shape[dim], along)));
  lanes.push_back(dealer.take(dim, along));
  lanes.push_back({kCopies, lanesLeft / along, 0});
  for (unsigned d = shape.size(); d-- > 0;) {
    if (d == dim)
      continue;
    int64_t count = dealer.fitting(d, warpsLeft);
    warpFactors.push_back(dealer.take(d, count));
    warpsLeft /= count;
  }
  warpFactors.push_back({kCopies, warpsLeft, 0});
  for (unsigned d = shape.size(); d-- > 0;)
    if (d != dim)
      registers.push_back(dealer.take(d, dealer.leftOf(d)));
  return Layout(shape, registers, lanes, warpFactors);
}

Accumulator Accumulator::divide(int64_t rows, int64_t columns, int64_t warps,
                                bool wholeRows) {
  int64_t rowTiles = ceilDiv(rows, 16), columnTiles = ceilDiv(columns, 8);
  Accumulator best{};
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int64_t rowWarps = 1; rowWarps <= warps; rowWarps *= 2) {
    // Warps that neither rows nor columns are left for hold copies.
    int64_t columnWarps =
        std::min<int64_t>(warps / rowWarps, llvm::PowerOf2Ceil(columnTiles));
    Accumulator part{ceilDiv(rowTiles, rowWarps),
                     ceilDiv(columnTiles, columnWarps), rowWarps, columnWarps};
    if (rowWarps > 1 && ceilDiv(rowTiles, rowWarps / 2) == part.rowTiles)
      continue;
    int64_t products = part.rowTiles * part.columnTiles;
    int64_t operands = 2 * part.rowTiles + part.columnTiles;
    int64_t cost = wholeRows ? columnWarps : (products << 20) + operands;
    if (cost < least) {
      least = cost;
      best = part;
    }
  }
  return best;
}

Layout Accumulator::layout(int64_t rows, int64_t columns, int64_t warps) const {
  return Layout({rows, columns},
                {{1, 2, 1}, {0, 2, 8}, {1, columnTiles, 8}, {0, rowTiles, 16}},
                {{1, 4, 2}, {0, 8, 1}},
                {{0, rowWarps, 16 * rowTiles},
                 {1, columnWarps, 8 * columnTiles},
                 {kCopies, warps / (rowWarps * columnWarps), 0}});
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

static void addDigits(ArrayRef<Factor> factors, int64_t number,
                      Coordinates &coordinates) {
  for (const Factor &factor : factors) {
    if (factor.dim != kCopies)
      coordinates[factor.dim] += number % factor.size * factor.stride;
    number /= factor.size;
  }
}

int64_t Layout::numRegisters() const {
  int64_t count = 1;
  for (const Factor &factor : registers)
    count *= factor.size;
  return count;
}

Coordinates Layout::registerOffset(int64_t reg) const {
  Coordinates offset(shape.size(), 0);
  addDigits(registers, reg, offset);
  return offset;
}

Coordinates Layout::threadBase(int64_t lane, int64_t warp) const {
  Coordinates base(shape.size(), 0);
  addDigits(lanes, lane, base);
  addDigits(warps, warp, base);
  return base;
}

std::optional<int64_t> Layout::registerAt(ArrayRef<int64_t> offset) const {
  // Every digit takes what is left of its dim, the largest stride first.
  llvm::SmallVector<unsigned> order;
  for (unsigned n = 0; n < registers.size(); ++n)
    order.push_back(n);
  llvm::sort(order, [&](unsigned a, unsigned b) {
    return std::pair(registers[a].stride, a) >
           std::pair(registers[b].stride, b);
  });
  llvm::SmallVector<int64_t> digits(registers.size());
  Coordinates left(offset);
  for (unsigned n : order) {
    const Factor &factor = registers[n];
    digits[n] = std::min(left[factor.dim] / factor.stride, factor.size - 1);
    left[factor.dim] -= digits[n] * factor.stride;
  }
  if (llvm::any_of(left, [](int64_t rest) { return rest != 0; }))
    return std::nullopt;
  int64_t reg = 0, weight = 1;
  for (unsigned n = 0; n < registers.size(); ++n) {
    reg += digits[n] * weight;
    weight *= registers[n].size;
  }
  return reg;
}

int64_t Layout::extent(unsigned dim) const {
  int64_t last = 0;
  for (ArrayRef<Factor> factors :
       {ArrayRef<Factor>(registers), ArrayRef<Factor>(lanes),
        ArrayRef<Factor>(warps)})
    for (const Factor &factor : factors)
      if (factor.dim == int(dim))
        last += (factor.size - 1) * factor.stride;
  return last + 1;
}

int64_t Layout::run(unsigned dim) const {
  if (registers.empty() || registers.front().dim != int(dim) ||
      registers.front().stride != 1)
    return 1;
  return registers.front().size;
}

bool Layout::hasCopies() const {
  auto isCopy = [](const Factor &factor) { return factor.dim == kCopies; };
  return llvm::any_of(lanes, isCopy) || llvm::any_of(warps, isCopy);
}

bool Layout::sameThreads(const Layout &other) const {
  return lanes == other.lanes && warps == other.warps;
}

//===----------------------------------------------------------------------===//
// Changes of shape
//===----------------------------------------------------------------------===//

/// The factors with each dim mapped; kCopies where the dim goes.
static Layout::Factors mapDims(ArrayRef<Factor> factors,
                               llvm::function_ref<int(const Factor &)> dimOf) {
  Layout::Factors result;
  for (Factor factor : factors) {
    if (factor.dim != kCopies)
      factor.dim = dimOf(factor);
    result.push_back(factor);
  }
  return result;
}

Layout Layout::restricted(ArrayRef<int64_t> to) const {
  auto keep = [&](const Factor &factor) {
    return to[factor.dim] == 1 ? kCopies : factor.dim;
  };
  return Layout(to, mapDims(registers, keep), mapDims(lanes, keep),
                mapDims(warps, keep));
}

Layout Layout::reduced(unsigned dim) const {
  // Other dims of size 1 stay: what lies past them has no value.
  Coordinates to(shape);
  to[dim] = 1;
  auto keep = [&](const Factor &factor) {
    return factor.dim == int(dim) ? kCopies : factor.dim;
  };
  return Layout(to, mapDims(registers, keep), mapDims(lanes, keep),
                mapDims(warps, keep));
}

Layout Layout::stacked(unsigned dim, int64_t size) const {
  Coordinates to(shape);
  to[dim] = size;
  Factors more{{int(dim), size, 1}};
  llvm::append_range(more, registers);
  return Layout(to, more, lanes, warps);
}

Layout Layout::permuted(ArrayRef<int64_t> permutation) const {
  Coordinates to(shape.size());
  llvm::SmallVector<int, 3> inverse(shape.size());
  for (unsigned d = 0; d < shape.size(); ++d) {
    to[d] = shape[permutation[d]];
    inverse[permutation[d]] = int(d);
  }
  auto move = [&](const Factor &factor) { return inverse[factor.dim]; };
  return Layout(to, mapDims(registers, move), mapDims(lanes, move),
                mapDims(warps, move));
}

std::optional<Layout> Layout::reshaped(ArrayRef<int64_t> to) const {
  auto weightsOf = [](ArrayRef<int64_t> sizes) {
    Coordinates weights(sizes.size());
    int64_t weight = 1;
    for (unsigned d = sizes.size(); d-- > 0; weight *= sizes[d])
      weights[d] = weight;
    return weights;
  };
  // A dim that is padded can only stay as it is.
  Coordinates fromWeights = weightsOf(shape), toWeights = weightsOf(to);
  for (unsigned d = 0; d < shape.size(); ++d) {
    if (!reachesPast(d))
      continue;
    bool kept = false;
    for (unsigned e = 0; e < to.size(); ++e)
      kept |= to[e] == shape[d] && toWeights[e] == fromWeights[d];
    if (!kept)
      return std::nullopt;
  }
  bool possible = true;
  auto move = [&](ArrayRef<Factor> factors) {
    Factors result;
    for (const Factor &factor : factors) {
      if (factor.dim == kCopies) {
        result.push_back(factor);
        continue;
      }
      // A digit that crosses dims becomes one for each.
      int64_t step = factor.stride * fromWeights[factor.dim];
      int64_t size = factor.size;
      bool isKept = reachesPast(factor.dim);
      while (size > 1 && possible) {
        possible = false;
        for (unsigned e = 0; e < to.size() && !possible; ++e) {
          int64_t end = toWeights[e] * to[e];
          if (to[e] == 1 || step < toWeights[e] ||
              step >= end * (isKept ? size : 1) || step % toWeights[e] != 0)
            continue;
          int64_t inside = isKept ? size : std::min(size, end / step);
          if (size % inside != 0 || (inside < size && end % step != 0) ||
              (isKept && (toWeights[e] != fromWeights[factor.dim] ||
                          to[e] != shape[factor.dim])))
            continue;
          result.push_back({int(e), inside, step / toWeights[e]});
          size /= inside;
          step *= inside;
          possible = true;
        }
      }
    }
    return result;
  };
  Factors newRegisters = move(registers), newLanes = move(lanes),
          newWarps = move(warps);
  if (!possible)
    return std::nullopt;
  return Layout(to, newRegisters, newLanes, newWarps);
}

void Layout::print(llvm::raw_ostream &os) const {
  auto list = [&](llvm::StringRef name, ArrayRef<Factor> factors) {
    os << name << " [";
    llvm::interleaveComma(factors, os, [&](const Factor &factor) {
      os << factor.size;
      if (factor.dim == kCopies)
        os << " copies";
      else
        os << " x " << factor.stride << " of dim " << factor.dim;
    });
    os << "]";
  };
  list("registers", registers);
  list(" lanes", lanes);
  list(" warps", warps);
}
