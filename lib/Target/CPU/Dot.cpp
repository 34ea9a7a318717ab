//===- Dot.cpp - products in register blocks -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The sum over the depth of a block of rows x columns of the result stays in
// registers: per step a row of b is read in vectors, and each element of a
// column of a is broadcast and multiplied with it. What a product needs besides
// depends on its operands:
//   - b with contiguous rows is read where it lies, or copied to a panel of one
//     block's columns first when its rows are far apart and used often;
//   - b with contiguous columns (a transposed operand) is transposed into that
//     panel, in registers;
//   - unless a has only a few rows, which would not pay for it: then each
//     element of the result is a sum of vectors along the depth.
//
//===----------------------------------------------------------------------===//

#include "Dot.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace hybrid::cpu;

namespace {

/// With fewer rows a transposed b is not transposed.
constexpr int64_t kRowsWorthTransposing = 8;
/// With as many rows a panel is worth its copy when the rows of b are at least
/// this many elements apart: a page holds few of them, and they compete for the
/// same sets of the first cache.
constexpr int64_t kRowsWorthCopying = 32;
constexpr int64_t kFarApart = 256;
/// Rows of a block; each needs a pointer register.
constexpr int64_t kMostRows = 12;
/// Vectors of a block with few rows.
constexpr int64_t kMostVectors = 8;

enum class Form { InPlace, Panel, AlongDepth };

Form chooseForm(const Dot &dot) {
  bool contiguousRows = dot.b.strides[1].is(1) || dot.columns() == 1;
  if (contiguousRows) {
    const Int &stride = dot.b.strides[0];
    bool farApart = !stride.isKnown() || stride.getKnown() >= kFarApart;
    return dot.rows() >= kRowsWorthCopying && farApart ? Form::Panel
                                                       : Form::InPlace;
  }
  bool alongDepth = dot.b.strides[0].is(1) && dot.a.strides[1].is(1);
  return alongDepth && dot.rows() < kRowsWorthTransposing ? Form::AlongDepth
                                                          : Form::Panel;
}

/// Builds the body of one product function.
class ProductBuilder {
public:
  ProductBuilder(CodeBuilder &b, const Dot &dot, Value panel)
      : b(b), dot(dot), panel(panel), type(dot.c.element) {}

  void emit();

private:
  /// Consecutive columns as widths of vectors.
  using Widths = SmallVector<int64_t>;

  void chooseBlock();
  void emitColumns(Int column, const Widths &widths);
  void emitBlock(const Place &rightRows, Int row, int64_t rows, Int column,
                 const Widths &widths);
  Place fillPanel(Int column, const Widths &widths);
  void copyInto(const Place &to, const Place &from, const Widths &widths);
  void emitAlongDepth();
  void emitDots(Int column, int64_t count);

  Value vectorOf(int64_t width) { return b.zero(b.widened(type, width)); }

  CodeBuilder &b;
  const Dot &dot;
  Value panel;
  Type type;
  Form form;
  int64_t blockRows;
  int64_t blockVectors;
};

void ProductBuilder::chooseBlock() {
  const LevelTraits &traits = b.getTraits();
  int64_t accumulators = traits.rows * traits.columns / traits.lanes;
  int64_t vectors = llvm::divideCeil(dot.columns(), traits.lanes);
  blockVectors = traits.columns / traits.lanes;
  if (dot.rows() < traits.rows)
    blockVectors = std::min(kMostVectors, accumulators / dot.rows());
  blockVectors = std::min(blockVectors, vectors);
  blockRows = std::min({dot.rows(), accumulators / blockVectors, kMostRows});
}

void ProductBuilder::emit() {
  form = chooseForm(dot);
  if (form == Form::AlongDepth) {
    emitAlongDepth();
    return;
  }
  chooseBlock();
  int64_t lanes = b.getTraits().lanes;
  int64_t blockColumns = blockVectors * lanes;
  int64_t full = dot.columns() / blockColumns * blockColumns;
  Widths widths(blockVectors, lanes);
  if (full == blockColumns)
    emitColumns(0, widths);
  else if (full != 0)
    b.loop(0, full, blockColumns,
           [&](Value column) { emitColumns(column, widths); });
  Widths rest;
  for (int64_t left = dot.columns() - full, width = lanes; left > 0;) {
    if (width > left) {
      width /= 2;
      continue;
    }
    rest.push_back(width);
    left -= width;
  }
  // A rest of many small widths is taken in several blocks.
  for (int64_t column = full; !rest.empty();) {
    size_t count = std::min<size_t>(rest.size(), blockVectors);
    Widths part(rest.begin(), rest.begin() + count);
    emitColumns(column, part);
    for (int64_t width : part)
      column += width;
    rest.erase(rest.begin(), rest.begin() + count);
  }
}

void ProductBuilder::emitColumns(Int column, const Widths &widths) {
  Place right = dot.b;
  if (form == Form::Panel)
    right = fillPanel(column, widths);
  else
    right.offset = b.add(right.offset, b.mul(column, right.strides[1]));
  int64_t full = dot.rows() / blockRows * blockRows;
  if (full == blockRows)
    emitBlock(right, 0, blockRows, column, widths);
  else
    b.loop(0, full, blockRows, [&](Value row) {
      emitBlock(right, row, blockRows, column, widths);
    });
  if (full != dot.rows())
    emitBlock(right, full, dot.rows() - full, column, widths);
}

void ProductBuilder::emitBlock(const Place &right, Int row, int64_t rows,
                               Int column, const Widths &widths) {
  SmallVector<Value> targets, sources, sums;
  for (int64_t r = 0; r < rows; ++r) {
    Int at = b.add(row, r);
    sources.push_back(dot.a.addressOf(b, {at, 0}));
    int64_t start = 0;
    for (int64_t width : widths) {
      targets.push_back(dot.c.addressOf(b, {at, b.add(column, start)}));
      sums.push_back(dot.zero ? vectorOf(width)
                              : b.load(b.widened(type, width), targets.back()));
      start += width;
    }
  }
  sums = b.loop(0, dot.depth(), 1, sums, [&](Value k, ValueRange carried) {
    SmallVector<Value> columns, next;
    int64_t start = 0;
    for (int64_t width : widths) {
      columns.push_back(
          b.load(b.widened(type, width), right.addressOf(b, {k, start})));
      start += width;
    }
    for (int64_t r = 0; r < rows; ++r) {
      Value left =
          b.load(type, b.address(sources[r], b.mul(k, dot.a.strides[1]), type));
      for (auto [v, width] : llvm::enumerate(widths))
        next.push_back(b.mulAdd(b.broadcast(left, width), columns[v],
                                carried[r * widths.size() + v]));
    }
    return next;
  });
  for (auto [sum, target] : llvm::zip_equal(sums, targets))
    b.store(sum, target);
}

Place ProductBuilder::fillPanel(Int column, const Widths &widths) {
  int64_t columns = 0;
  for (int64_t width : widths)
    columns += width;
  Place from = dot.b;
  from.offset = b.add(from.offset, b.mul(column, from.strides[1]));
  from.shape = {dot.depth(), columns};
  Place to{panel,
           0,
           {dot.depth(), columns},
           Place::rowMajor({dot.depth(), columns}),
           type};
  if (from.strides[1].is(1))
    copyInto(to, from, widths);
  else
    copyTransposed(b, from, to);
  return to;
}

void ProductBuilder::copyInto(const Place &to, const Place &from,
                              const Widths &widths) {
  b.loop(0, dot.depth(), 1, [&](Value k) {
    int64_t start = 0;
    for (int64_t width : widths) {
      Value vector =
          b.load(b.widened(type, width), from.addressOf(b, {k, start}));
      b.store(vector, to.addressOf(b, {k, start}));
      start += width;
    }
  });
}

void ProductBuilder::emitAlongDepth() {
  const LevelTraits &traits = b.getTraits();
  int64_t accumulators = traits.rows * traits.columns / traits.lanes;
  int64_t count =
      std::clamp<int64_t>(accumulators / dot.rows(), 1, kMostVectors);
  int64_t full = dot.columns() / count * count;
  if (full != 0)
    b.loop(0, full, count, [&](Value column) { emitDots(column, count); });
  if (full != dot.columns())
    emitDots(full, dot.columns() - full);
}

void ProductBuilder::emitDots(Int column, int64_t count) {
  int64_t lanes = b.getTraits().lanes;
  int64_t full = dot.depth() / lanes * lanes;
  auto step = [&](Value k, ValueRange carried, int64_t width) {
    SmallVector<Value> columns, next;
    for (int64_t n = 0; n < count; ++n)
      columns.push_back(b.load(b.widened(type, width),
                               dot.b.addressOf(b, {k, b.add(column, n)})));
    for (int64_t r = 0; r < dot.rows(); ++r) {
      Value left = b.load(b.widened(type, width), dot.a.addressOf(b, {r, k}));
      for (int64_t n = 0; n < count; ++n)
        next.push_back(b.mulAdd(left, columns[n], carried[r * count + n]));
    }
    return next;
  };

  SmallVector<Value> targets, sums;
  for (int64_t r = 0; r < dot.rows(); ++r) {
    for (int64_t n = 0; n < count; ++n) {
      targets.push_back(dot.c.addressOf(b, {r, b.add(column, n)}));
      sums.push_back(dot.zero ? b.zero(type) : b.load(type, targets.back()));
    }
  }
  if (full != 0) {
    SmallVector<Value> vectors(sums.size(), vectorOf(lanes));
    vectors = b.loop(0, full, lanes, vectors, [&](Value k, ValueRange carried) {
      return step(k, carried, lanes);
    });
    auto add = [&](Value x, Value y) -> Value {
      return arith::AddFOp::create(b, x, y);
    };
    for (auto [sum, vector] : llvm::zip_equal(sums, vectors))
      sum = add(sum, b.reduceLanes(vector, add));
  }
  if (full != dot.depth())
    sums = b.loop(full, dot.depth(), 1, sums, [&](Value k, ValueRange carried) {
      return step(k, carried, 1);
    });
  for (auto [sum, target] : llvm::zip_equal(sums, targets))
    b.store(sum, target);
}

/// A product with one column is the transposed product with one row.
Dot withColumnsAsRows(const Dot &dot) {
  if (dot.columns() != 1 || dot.rows() == 1 || !dot.c.strides[0].is(1))
    return dot;
  Dot turned{dot.b.permute({1, 0}), dot.a.permute({1, 0}),
             dot.c.permute({1, 0}), dot.zero};
  turned.a.strides[0] = 0;
  turned.c.strides[0] = 0;
  return turned;
}

void appendStrides(std::string &name, StringRef operand, const Place &place) {
  for (const Int &stride : place.strides) {
    name += operand;
    name += stride.isKnown() ? std::to_string(stride.getKnown()) : "x";
  }
}

std::string functionName(const Dot &dot) {
  std::string name =
      llvm::formatv("dot_{0}x{1}x{2}", dot.rows(), dot.columns(), dot.depth());
  appendStrides(name, "_a", dot.a);
  appendStrides(name, "_b", dot.b);
  appendStrides(name, "_c", dot.c);
  if (dot.zero)
    name += "_zero";
  return name;
}

} // namespace

int64_t hybrid::cpu::panelBytes(const LevelTraits &traits, int64_t depth) {
  return depth * std::max(traits.columns, kMostVectors * traits.lanes) *
         int64_t(sizeof(float));
}

func::FuncOp DotFunctions::functionFor(CodeBuilder &b, const Dot &dot) {
  std::string name = functionName(dot);
  func::FuncOp &function = functions[name];
  if (function)
    return function;

  // Pointers of the operands and of the panel, then the strides of the
  // operands.
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  SmallVector<Type> arguments(4, pointer);
  arguments.append(6, b.getI64Type());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(module.getBody());
  function = func::FuncOp::create(b, name, b.getFunctionType(arguments, {}));
  function.setPrivate();
  function->setAttr(
      "llvm.linkage",
      LLVM::LinkageAttr::get(b.getContext(), LLVM::Linkage::Internal));
  function->setAttr("passthrough", b.getStrArrayAttr({"noinline"}));
  for (unsigned written : {2, 3})
    function.setArgAttr(written, LLVM::LLVMDialect::getNoAliasAttrName(),
                        b.getUnitAttr());

  Block *entry = function.addEntryBlock();
  b.setInsertionPointToStart(entry);
  Dot inner = dot;
  unsigned next = 4;
  unsigned pointers = 0;
  for (Place *place : {&inner.a, &inner.b, &inner.c}) {
    place->base = entry->getArgument(pointers++);
    place->offset = 0;
    for (Int &stride : place->strides) {
      if (!stride.isKnown())
        stride = Value(entry->getArgument(next));
      ++next;
    }
  }
  ProductBuilder(b, inner, entry->getArgument(3)).emit();
  func::ReturnOp::create(b);
  return function;
}

void DotFunctions::call(CodeBuilder &b, Dot dot, Value panel) {
  dot = withColumnsAsRows(dot);
  func::FuncOp function = functionFor(b, dot);
  SmallVector<Value> arguments, strides;
  for (const Place *place : {&dot.a, &dot.b, &dot.c}) {
    arguments.push_back(b.address(place->base, place->offset, place->element));
    for (const Int &stride : place->strides)
      strides.push_back(b.valueOf(stride));
  }
  arguments.push_back(panel);
  arguments.append(strides);
  func::CallOp::create(b, function, arguments);
}
