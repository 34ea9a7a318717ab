//===- Dispatches.cpp - runs the dispatches of a function -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dispatches.h"

#include "TokensById.h"
#include "hybrid/Hybrid/GraphShapes.h"
#include "mlir/IR/IntegerSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace hybrid;

static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

SmallVector<int64_t> hybrid::symbolsOf(const oracle::Call &call) {
  return {call.tokens(),  int64_t(call.segments.size()),
          call.longest(), call.slots,
          call.context,   call.depth};
}

/// The value of an expression of the six symbols.
static int64_t evaluate(AffineExpr expr, ArrayRef<int64_t> symbols) {
  SmallVector<AffineExpr> constants;
  for (int64_t symbol : symbols)
    constants.push_back(getAffineConstantExpr(symbol, expr.getContext()));
  AffineExpr value = simplifyAffineExpr(expr.replaceSymbols(constants), 0, 0);
  return cast<AffineConstantExpr>(value).getValue();
}

SmallVector<int64_t> hybrid::sizesOf(RankedTensorType type,
                                     ArrayRef<int64_t> symbols) {
  SmallVector<int64_t> sizes;
  for (AffineExpr size : getSizes(type).getResults())
    sizes.push_back(evaluate(size, symbols));
  return sizes;
}

tile::HostView DispatchRunner::Array::view() const {
  tile::HostView view = buffer->view();
  view.sizes.assign(sizes.begin(), sizes.end());
  view.strides.assign(sizes.size(), 1);
  for (int64_t d = static_cast<int64_t>(sizes.size()) - 2; d >= 0; --d)
    view.strides[d] = view.strides[d + 1] * sizes[d + 1];
  return view;
}

DispatchRunner::DispatchRunner(const oracle::Call &call, RunProgram runProgram)
    : call(call), symbols(symbolsOf(call)), runProgram(std::move(runProgram)),
      table({int64_t(call.segments.size()), 4}, 0.0),
      tokenSegment({call.tokens()}, 0.0) {
  for (auto [n, segment] : llvm::enumerate(call.segments)) {
    const int64_t row[] = {segment.begin, segment.end, segment.slot,
                           segment.position};
    for (int64_t column = 0; column < 4; ++column)
      table({int64_t(n), column}) = row[column];
    for (int64_t t = segment.begin; t < segment.end; ++t)
      tokenSegment({t}) = n;
  }
}

DispatchRunner::Array DispatchRunner::make(Type type) const {
  SmallVector<int64_t> sizes = sizesOf(cast<RankedTensorType>(type), symbols);
  return {std::make_shared<tile::HostBuffer>(sizes, kNaN), sizes};
}

static bool hasRole(func::FuncOp function, BlockArgument argument,
                    StringRef wanted) {
  auto role = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                    "hybrid.role");
  return role && role == wanted;
}

FailureOr<std::vector<oracle::Tensor>>
DispatchRunner::run(func::FuncOp function, ArrayRef<oracle::Tensor> arguments) {
  for (BlockArgument argument : function.getArguments()) {
    const oracle::Tensor *tensor = nullptr;
    bool isGiven = !hasRole(function, argument, "tokens_by_id");
    if (isGiven) {
      assert(!arguments.empty() && "a tensor for every argument");
      tensor = &arguments.front();
      arguments = arguments.drop_front();
    }
    if (isa<SegmentsType>(argument.getType()))
      continue;
    Array array = make(argument.getType());
    arrays[argument] = array;
    if (tensor) {
      llvm::copy(tensor->data, array.buffer->elements().begin());
      continue;
    }
    BlockArgument ids =
        *llvm::find_if(function.getArguments(), [&](BlockArgument other) {
          return hasRole(function, other, "ids");
        });
    *array.buffer = tile::tokensById(arrays[ids].buffer->elements());
  }
  assert(arguments.empty() && "an argument for every tensor");
  Block &body = function.getBody().front();
  if (failed(runBlock(body)))
    return failure();
  std::vector<oracle::Tensor> results;
  for (Value value : body.getTerminator()->getOperands()) {
    const Array &array = arrays[value];
    if (!array.buffer->tailIsIntact())
      return function.emitError("a program wrote past the end of a result");
    MutableArrayRef<double> elements = array.buffer->elements();
    results.push_back(
        {array.sizes, std::vector<double>(elements.begin(), elements.end())});
  }
  return results;
}

LogicalResult DispatchRunner::runBlock(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(runOp(op)))
      return failure();
  return success();
}

LogicalResult DispatchRunner::runOp(Operation &op) {
  return TypeSwitch<Operation *, LogicalResult>(&op)
      .Case([&](DispatchOp dispatch) { return runDispatch(dispatch); })
      .Case([&](AlternativesOp alternatives) {
        return runAlternatives(alternatives);
      })
      .Case([&](PiecesOp pieces) { return runPieces(pieces); })
      .Case([&](ReshapeOp reshape) {
        Array array = arrays[reshape.getX()];
        array.sizes = sizesOf(reshape.getType(), symbols);
        arrays[reshape] = array;
        return success();
      })
      .Case([&](SliceOp slice) {
        Array part = make(slice.getType());
        copyPart(arrays[slice.getX()], part, slice.getDim(), slice.getOffset(),
                 0, slice.getSize());
        arrays[slice] = part;
        return success();
      })
      .Case([&](CastOp cast) {
        // Of a parameter: its copy.
        Array copy = make(cast.getType());
        MutableArrayRef<double> from = arrays[cast.getX()].buffer->elements();
        oracle::Tensor rounded = oracle::roundTo(
            {copy.sizes, std::vector<double>(from.begin(), from.end())},
            cast.getType());
        llvm::copy(rounded.data, copy.buffer->elements().begin());
        arrays[cast] = copy;
        return success();
      })
      .Case([&](ConcatOp concat) {
        Array whole = make(concat.getType());
        int64_t offset = 0;
        for (Value value : concat.getParts()) {
          Array part = arrays[value];
          int64_t size = part.sizes[concat.getDim()];
          copyPart(part, whole, concat.getDim(), 0, offset, size);
          offset += size;
        }
        arrays[concat] = whole;
        return success();
      })
      .Default([](Operation *other) {
        return other->emitOpError(
            "is neither a dispatch nor a view; schedule it first");
      });
}

void DispatchRunner::copyPart(const Array &from, const Array &to, int64_t dim,
                              int64_t fromOffset, int64_t toOffset,
                              int64_t size) {
  int64_t outer = 1, inner = 1;
  for (int64_t d = 0; d < dim; ++d)
    outer *= from.sizes[d];
  for (int64_t d = dim + 1; d < static_cast<int64_t>(from.sizes.size()); ++d)
    inner *= from.sizes[d];
  for (int64_t o = 0; o < outer; ++o)
    std::copy_n(from.buffer->elements().begin() +
                    (o * from.sizes[dim] + fromOffset) * inner,
                size * inner,
                to.buffer->elements().begin() +
                    (o * to.sizes[dim] + toOffset) * inner);
}

LogicalResult DispatchRunner::runDispatch(DispatchOp op) {
  auto program = SymbolTable::lookupNearestSymbolFrom<tile::ProgramOp>(
      op, op.getProgramAttr());
  if (!program)
    return op.emitOpError("there is no program ") << op.getProgramAttr();
  SmallVector<tile::HostView> views;
  for (Value input : op.getInputs()) {
    if (isa<SegmentsType>(input.getType()))
      views.append({table.view(), tokenSegment.view()});
    else
      views.push_back(arrays[input].view());
  }
  for (OpResult result : op.getOutputs()) {
    if (std::optional<unsigned> input =
            op.getTiedInput(result.getResultNumber())) {
      // A copy first: entries move when one is added.
      Array tied = arrays[op.getInputs()[*input]];
      arrays[result] = tied;
      continue;
    }
    arrays[result] = make(result.getType());
    views.push_back(arrays[result].view());
  }
  return runProgram(program, views, symbols);
}

LogicalResult DispatchRunner::runPieces(PiecesOp op) {
  Block &block = op.getBlock();
  for (OpResult result : op->getResults())
    arrays[result] = make(result.getType());
  for (auto [result, sum] : llvm::zip(
           op->getResults().take_back(op.getSums().size()), op.getSums())) {
    Array array = arrays[sum];
    arrays[result] = array;
  }
  const int64_t tokens = symbols[0];
  for (int64_t row = 0; row < tokens; row += op.getRows()) {
    int64_t rows = std::min<int64_t>(op.getRows(), tokens - row);
    symbols[0] = rows;
    for (BlockArgument argument : block.getArguments()) {
      Array whole = arrays[op.getOperandOf(argument)];
      if (argument.getArgNumber() < op.getStreams().size()) {
        Array part = make(argument.getType());
        copyPart(whole, part, /*dim=*/0, row, 0, rows);
        whole = part;
      }
      arrays[argument] = whole;
    }
    if (failed(runBlock(block)))
      return failure();
    for (OpResult result : op->getResults()) {
      Array part = arrays[op.getYielded(result)];
      if (!op.isSum(result))
        copyPart(part, arrays[result], /*dim=*/0, 0, row, rows);
      else if (part.buffer != arrays[result].buffer)
        return op.emitOpError("yields a sum that is not made in place");
    }
  }
  symbols[0] = tokens;
  return success();
}

LogicalResult DispatchRunner::runAlternatives(AlternativesOp op) {
  unsigned chosen = 0;
  for (auto guard : op.getGuards().getAsRange<IntegerSetAttr>()) {
    bool holds = true;
    for (auto [constraint, isEqual] :
         llvm::zip_equal(guard.getValue().getConstraints(),
                         guard.getValue().getEqFlags())) {
      int64_t value = evaluate(constraint, symbols);
      holds &= isEqual ? value == 0 : value >= 0;
    }
    if (holds)
      break;
    ++chosen;
  }
  Block &block = op.getAlgorithms()[chosen].front();
  if (failed(runBlock(block)))
    return failure();
  for (auto [result, value] :
       llvm::zip_equal(op.getResults(), block.getTerminator()->getOperands())) {
    Array array = arrays[value];
    arrays[result] = array;
  }
  return success();
}
