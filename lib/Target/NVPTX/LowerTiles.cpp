//===- LowerTiles.cpp - elements, reductions, running sums, parts --------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include <limits>

using namespace mlir;
using namespace hybrid;
using namespace hybrid::nvptx;

//===----------------------------------------------------------------------===//
// One element
//===----------------------------------------------------------------------===//

/// Whether `value` is 1 + e^x, as in a sigmoid, for the given exponential or
/// any.
static bool isOnePlusExponential(Value value, Operation *exponential = {}) {
  auto sum = value.getDefiningOp<arith::AddFOp>();
  if (!sum)
    return false;
  auto is = [&](Value one, Value other) {
    return matchPattern(one, m_OneFloat()) &&
           other.getDefiningOp<math::ExpOp>() &&
           (!exponential || other.getDefiningOp() == exponential);
  };
  return is(sum.getLhs(), sum.getRhs()) || is(sum.getRhs(), sum.getLhs());
}

/// e^x = 2^(x log2 e). The product's rounding costs |x| 2^-24 of relative
/// error, the instruction 2^-22: below 6e-6 wherever the result is a normal
/// number. Keeping what is smaller takes three instructions more, which a
/// sigmoid is not worth: there it is 0.
static Value exponential(GpuBuilder &b, Operation *op, Value x) {
  if (isa<math::ExpOp>(op)) {
    Value log2e =
        arith::ConstantOp::create(b, b.getF32FloatAttr(1.44269504088896341f));
    x = arith::MulFOp::create(b, x, log2e);
  }
  bool isOfSigmoid = op->getNumResults() == 1 &&
                     llvm::any_of(op->getUsers(), [&](Operation *user) {
                       return user->getNumResults() == 1 &&
                              isOnePlusExponential(user->getResult(0), op);
                     });
  return b.intrinsic(isOfSigmoid ? "llvm.nvvm.ex2.approx.ftz.f32"
                                 : "llvm.nvvm.ex2.approx.f32",
                     b.getF32Type(), x);
}

/// Within two units in the last place, without a branch; a quotient to nearest
/// is a dozen instructions and a call. What `div.full` does for divisors beyond
/// 2^126 is left out where the divisor is 1 + e^x: the quotient is then 0.
static Value quotient(GpuBuilder &b, Operation *op, ValueRange operands) {
  Type f32 = b.getF32Type();
  if (!isOnePlusExponential(op->getOperand(1)))
    return b.intrinsic("llvm.nvvm.div.full", f32, operands);
  Value inverse = b.intrinsic("llvm.nvvm.rcp.approx.ftz.f", f32, operands[1]);
  return arith::MulFOp::create(b, operands[0], inverse);
}

Value hybrid::nvptx::scalarOp(GpuBuilder &b, Operation *op,
                              ValueRange operands) {
  using Values = GpuBuilder::Values;
  Type f32 = b.getF32Type();
  Type type = getElementTypeOrSelf(op->getResult(0).getType());
  // Elementary functions of narrow types are those of f32.
  if (isa<math::MathDialect>(op->getDialect()) && isa<FloatType>(type) &&
      type.getIntOrFloatBitWidth() < 32) {
    Values wide;
    for (Value operand : operands)
      wide.push_back(isa<FloatType>(operand.getType())
                         ? arith::ExtFOp::create(b, f32, operand).getResult()
                         : operand);
    OperationState state(b.getLoc(), op->getName(), wide, {f32});
    Operation *made = b.create(state);
    Value result = scalarOp(b, made, wide);
    if (result != made->getResult(0))
      made->erase();
    return arith::TruncFOp::create(b, type, result);
  }
  if (type.isF32()) {
    if (isa<math::ExpOp, math::Exp2Op>(op))
      return exponential(b, op, operands[0]);
    if (isa<math::RsqrtOp>(op))
      return b.intrinsic("llvm.nvvm.rsqrt.approx.f", f32, operands[0]);
    if (isa<math::SqrtOp>(op))
      return b.intrinsic("llvm.nvvm.sqrt.rn.f", f32, operands[0]);
    if (isa<arith::DivFOp>(op))
      return quotient(b, op, operands);
    if (isa<arith::ExtFOp>(op) && operands[0].getType().isBF16())
      return b.widenBF16(operands[0]);
    if (isa<arith::MaximumFOp>(op))
      return b.maximum(operands[0], operands[1]);
    if (isa<arith::MinimumFOp>(op))
      return b.intrinsic("llvm.nvvm.fmin.nan.f", f32, operands);
  }
  OperationState state(b.getLoc(), op->getName(), operands, {type});
  for (NamedAttribute attribute : op->getAttrs())
    if (attribute.getName() != tile::TileDialect::kNameAttr)
      state.addAttribute(attribute.getName(), attribute.getValue());
  Operation *made = b.create(state);
  if (isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(made))
    cast<arith::ArithFastMathInterface>(made)->setAttr(
        "fastmath", arith::FastMathFlagsAttr::get(
                        b.getContext(), arith::FastMathFlags::contract));
  return made->getResult(0);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

Value KernelLowering::combine(tile::ReduceKind kind, Value x, Value y) {
  if (kind == tile::ReduceKind::max)
    return b.maximum(x, y);
  return arith::AddFOp::create(b, x, y);
}

KernelLowering::Values KernelLowering::maskPadding(const Layout &layout,
                                                   unsigned dim,
                                                   Values registers,
                                                   double identity) {
  if (!layout.reachesPast(dim))
    return registers;
  Value base = threadBase(layout)[dim];
  for (auto [reg, value] : llvm::enumerate(registers)) {
    int64_t left = layout.getShape()[dim] - layout.registerOffset(reg)[dim];
    Value neutral =
        arith::ConstantOp::create(b, b.getFloatAttr(value.getType(), identity));
    value = b.select(b.less(base, b.i32(left)), value, neutral);
  }
  return registers;
}

/// The digits of a lane or warp number that run along `dim`, as (weight, size).
static SmallVector<std::pair<int64_t, int64_t>>
digitsAlong(ArrayRef<Factor> factors, unsigned dim) {
  SmallVector<std::pair<int64_t, int64_t>> digits;
  int64_t weight = 1;
  for (const Factor &factor : factors) {
    if (factor.dim == int(dim))
      digits.push_back({weight, factor.size});
    weight *= factor.size;
  }
  return digits;
}

KernelLowering::Values KernelLowering::acrossLanes(const Layout &layout,
                                                   unsigned dim,
                                                   tile::ReduceKind kind,
                                                   Values registers) {
  for (auto [weight, size] : digitsAlong(layout.getLanes(), dim))
    for (int64_t bit = 1; bit < size; bit *= 2)
      for (Value &value : registers)
        value = combine(kind, value, b.shuffleXor(value, weight * bit));
  return registers;
}

/// Every warp leaves its part in shared memory.
KernelLowering::LeftParts KernelLowering::leaveParts(tile::ReduceOp reduce,
                                                     const Layout &layout,
                                                     Values registers) {
  unsigned dim = reduce.getDim();
  Value slab = b.i32(0);
  int64_t slabs = 1;
  for (auto [weight, size] : digitsAlong(layout.getWarps(), dim)) {
    Value digit =
        arith::ShRUIOp::create(b, b.warp(), b.i32(llvm::Log2_64(weight)));
    digit = arith::AndIOp::create(b, digit, b.i32(size - 1));
    slab = b.add(slab, b.mul(digit, b.i32(slabs)));
    slabs *= size;
  }
  Layout narrow = layout.reduced(dim);
  Coordinates extents;
  for (unsigned d = 0; d < narrow.getShape().size(); ++d)
    extents.push_back(narrow.extent(d));
  Coordinates shape(extents);
  shape.front() *= slabs;
  Type element = registers.front().getType();
  SharedTile all = allocateRowMajor(element, shape), one = all;
  int64_t bytes = storedBytes(element);
  for (int64_t size : extents)
    bytes *= size;
  one.extents = extents;
  one.pointer = b.address(all.pointer, b.mul(slab, b.i32(bytes)));
  // Warps that differ along the dim have parts of their own.
  write(narrow, registers, one, &layout);
  one.pointer = all.pointer;
  return {reduce, one, slabs, bytes};
}

/// All threads read all parts, in order. What several reductions leave before
/// one is used is read behind one barrier.
void KernelLowering::finishReductions() {
  for (LeftParts &parts : leftParts) {
    tile::ReduceOp reduce = parts.reduce;
    Layout layout = plan.layoutOf(reduce.getResult());
    SharedTile one = parts.first;
    Values sums;
    for (int64_t n = 0; n < parts.count; ++n) {
      one.pointer = b.address(parts.first.pointer, n * parts.bytes);
      Values part = read(one, layout);
      if (n == 0) {
        sums = part;
        continue;
      }
      for (auto [sum, next] : llvm::zip_equal(sums, part))
        sum = combine(reduce.getKind(), sum, next);
    }
    remember(reduce.getResult(), layout, sums);
  }
  leftParts.clear();
}

/// Whether `tile` holds numbers of 16 bits as f32.
static bool isWidened(Value tile) {
  Operation *op = tile.getDefiningOp();
  if (isa_and_nonnull<tile::BroadcastOp, tile::ReshapeOp, tile::SliceOp>(op))
    return isWidened(op->getOperand(0));
  auto widened = dyn_cast_or_null<arith::ExtFOp>(op);
  return widened &&
         storedBytes(getElementTypeOrSelf(widened.getIn().getType())) == 2;
}

/// Whether f32 holds the elements exactly before they are added: products of
/// numbers of 16 bits. Then a product and a sum may be one instruction, which
/// gives the same bits.
static bool isExactProduct(Value tile) {
  auto product = tile.getDefiningOp<arith::MulFOp>();
  return product && isWidened(product.getLhs()) && isWidened(product.getRhs());
}

void KernelLowering::lowerReduce(tile::ReduceOp reduce) {
  unsigned dim = reduce.getDim();
  tile::ReduceKind kind = reduce.getKind();
  Layout layout = plan.layoutOf(reduce.getInput());
  double identity = kind == tile::ReduceKind::max
                        ? -std::numeric_limits<double>::infinity()
                        : 0.0;
  Values elements =
      maskPadding(layout, dim, get(reduce.getInput(), layout), identity);
  Layout narrow = layout.reduced(dim);
  Values sums(narrow.numRegisters());
  bool isExact =
      kind == tile::ReduceKind::sum && isExactProduct(reduce.getInput());
  for (auto [reg, value] : llvm::enumerate(elements)) {
    Coordinates offset = layout.registerOffset(reg);
    offset[dim] = 0;
    Value &sum = sums[*narrow.registerAt(offset)];
    sum = sum ? combine(kind, sum, value) : value;
    if (auto add = sum.getDefiningOp<arith::AddFOp>(); add && isExact)
      add.setFastmath(arith::FastMathFlags::contract);
  }
  sums = acrossLanes(layout, dim, kind, sums);
  if (digitsAlong(layout.getWarps(), dim).empty())
    return remember(reduce.getResult(), narrow, sums);
  leftParts.push_back(leaveParts(reduce, layout, sums));
}

//===----------------------------------------------------------------------===//
// Running sums
//===----------------------------------------------------------------------===//

/// Adds to each lane's run the sums of the lanes before it.
void KernelLowering::scanLanes(const Layout &layout, unsigned dim, bool reverse,
                               Values &registers) {
  auto digits = digitsAlong(layout.getLanes(), dim);
  if (digits.empty())
    return;
  int64_t weight = digits.front().first, size = digits.front().second;
  int64_t run = layout.run(dim);
  Value digit =
      arith::ShRUIOp::create(b, b.lane(), b.i32(llvm::Log2_64(weight)));
  digit = arith::AndIOp::create(b, digit, b.i32(size - 1));
  auto from = [&](Value value, int64_t distance) {
    return reverse ? b.shuffleDown(value, distance * weight)
                   : b.shuffleUp(value, distance * weight);
  };
  auto exists = [&](int64_t distance) {
    return reverse ? b.less(digit, b.i32(size - distance))
                   : b.less(b.i32(distance - 1), digit);
  };
  Value zero = b.zero(registers.front().getType());
  for (size_t first = 0; first < registers.size(); first += run) {
    Value sum = registers[reverse ? first : first + run - 1];
    for (int64_t distance = 1; distance < size; distance *= 2) {
      Value before = b.select(exists(distance), from(sum, distance), zero);
      sum = arith::AddFOp::create(b, sum, before);
    }
    Value before = b.select(exists(1), from(sum, 1), zero);
    for (int64_t n = 0; n < run; ++n)
      registers[first + n] =
          arith::AddFOp::create(b, before, registers[first + n]);
  }
}

void KernelLowering::lowerPrefixSum(tile::PrefixSumOp prefix) {
  unsigned dim = prefix.getDim();
  bool reverse = prefix.getReverse();
  Layout layout =
      Layout::scan(shapeOf(prefix.getInput()), dim, plan.numWarps());
  Values registers =
      maskPadding(layout, dim, get(prefix.getInput(), layout), 0.0);
  int64_t run = layout.run(dim);
  for (size_t first = 0; first < registers.size(); first += run)
    for (int64_t n = 1; n < run; ++n) {
      int64_t at = reverse ? run - 1 - n : n;
      int64_t before = reverse ? at + 1 : at - 1;
      registers[first + at] = arith::AddFOp::create(
          b, registers[first + before], registers[first + at]);
    }
  scanLanes(layout, dim, reverse, registers);
  remember(prefix.getResult(), layout, registers);
}

//===----------------------------------------------------------------------===//
// Parts and other shapes
//===----------------------------------------------------------------------===//

void KernelLowering::lowerSlice(tile::SliceOp slice) {
  Value input = slice.getInput(), result = slice.getResult();
  unsigned dim = slice.getDim();
  int64_t start = slice.getOffset();
  Layout layout = plan.layoutOf(result);
  if (auto transpose = input.getDefiningOp<tile::TransposeOp>())
    if (auto whole = plan.layoutOfParts(transpose);
        whole && plan.layoutOf(transpose.getInput()) == *whole)
      get(input, whole->permuted(transpose.getPermutation()));
  // Other registers of the same threads, if it is so.
  for (const Distributed &version : versions[input].distributed) {
    if (!version.layout.sameThreads(layout))
      continue;
    Values registers;
    for (int64_t reg = 0; reg < layout.numRegisters(); ++reg) {
      Coordinates offset = layout.registerOffset(reg);
      offset[dim] += start;
      auto from = version.layout.registerAt(offset);
      if (!from)
        break;
      registers.push_back(version.registers[*from]);
    }
    if (int64_t(registers.size()) == layout.numRegisters())
      return remember(result, layout, registers);
  }
  SharedTile from = staged(input);
  from.pointer = b.address(from.pointer, start * from.strides[dim] *
                                             storedBytes(from.element));
  from.extents[dim] -= start;
  if (dim + 1 == from.strides.size() &&
      start * storedBytes(from.element) % 16 != 0)
    from.vector = 1;
  remember(result, layout, read(from, layout));
}

/// The registers of the parts, where each thread holds of all of them what it
/// holds of the whole.
std::optional<KernelLowering::Values>
KernelLowering::concatRegisters(tile::ConcatOp concat, const Layout &layout) {
  unsigned dim = concat.getDim();
  int64_t start = 0;
  Values registers(layout.numRegisters());
  for (Value input : concat.getInputs()) {
    Layout part = plan.layoutOf(input);
    if (!part.sameThreads(layout) || part.reachesPast(dim))
      return std::nullopt;
    Values from = get(input, part);
    for (auto [reg, value] : llvm::enumerate(from)) {
      Coordinates offset = part.registerOffset(reg);
      offset[dim] += start;
      auto to = layout.registerAt(offset);
      if (!to)
        return std::nullopt;
      registers[*to] = value;
    }
    start += shapeOf(input)[dim];
  }
  if (!llvm::all_of(registers, [](Value value) { return bool(value); }))
    return std::nullopt;
  return registers;
}

void KernelLowering::lowerConcat(tile::ConcatOp concat) {
  Value result = concat.getResult();
  unsigned dim = concat.getDim();
  Layout layout = plan.layoutOf(result);
  if (auto registers = concatRegisters(concat, layout))
    return remember(result, layout, *registers);
  SmallVector<Values> parts;
  for (Value input : concat.getInputs())
    parts.push_back(get(input, plan.layoutOf(input)));
  SharedTile all = allocateFor(result, shapeOf(result));
  shared.writes(all.buffer);
  int64_t start = 0;
  for (auto [input, registers] : llvm::zip_equal(concat.getInputs(), parts)) {
    SharedTile to = all;
    to.pointer = b.address(all.pointer,
                           start * all.strides[dim] * storedBytes(all.element));
    to.extents = Coordinates(shapeOf(input));
    if (dim + 1 == all.strides.size() &&
        start * storedBytes(all.element) % 16 != 0)
      to.vector = 1;
    writeUnordered(plan.layoutOf(input), registers, to);
    start += shapeOf(input)[dim];
  }
  remember(result, all);
  // Branches that read it would each wait for it, and what is behind for them.
  if (llvm::any_of(result.getUsers(), [&](Operation *user) {
        return isa<scf::IfOp>(user->getParentOp()) &&
               user->getBlock() != concat->getBlock();
      }))
    get(result, layout);
}

void KernelLowering::lowerReshape(tile::ReshapeOp reshape) {
  // What is cheap is computed where it is used, in the layout of the use.
  Value input = reshape.getInput();
  if (!plan.isCheap(input) &&
      !plan.layoutOf(reshape.getResult()).reshaped(shapeOf(input)))
    reshapeInMemory(reshape);
}

/// A shape that registers and threads cannot take as they are goes through
/// memory, row after row.
void KernelLowering::reshapeInMemory(tile::ReshapeOp reshape) {
  Value input = reshape.getInput(), result = reshape.getResult();
  Layout layout = plan.layoutOf(input);
  Values registers = get(input, layout);
  SharedTile from =
      allocateRowMajor(registers.front().getType(), shapeOf(input));
  write(layout, registers, from);
  SharedTile to = from;
  to.extents = Coordinates(shapeOf(result));
  to.strides.assign(to.extents.size(), 1);
  for (unsigned d = to.extents.size() - 1; d-- > 0;)
    to.strides[d] = to.strides[d + 1] * to.extents[d + 1];
  remember(result, to);
}
