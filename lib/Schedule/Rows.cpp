//===- Rows.cpp - strategies of everything around the mixers -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Scheduler.h"

#include "hybrid/Tile/Families/Rows.h"
#include "hybrid/Tile/Families/Rowwise.h"
#include "hybrid/Tile/Families/ShortConv.h"

using namespace mlir;
using namespace hybrid;

/// A block of rows loads, computes and stores in turns, so others have to use
/// the memory meanwhile: registers for so many warps, where ptxas would take
/// more than it needs. Rows of 16 bits alone, of which a thread asks for half
/// the bytes: with f32 it would spill.
static tile::ProgramOp besideOthers(const Scheduler &scheduler,
                                    tile::ProgramOp program, int64_t warps) {
  auto isNarrow = [](Type view) {
    return cast<tile::ViewType>(view)
               .getElementType()
               .getIntOrFloatBitWidth() == 16;
  };
  if (program && !scheduler.target.takesTurns &&
      llvm::any_of(program.getBlock().getArgumentTypes(), isNarrow))
    program->setAttr(tile::TileDialect::kWarpsAttr,
                     Builder(program.getContext()).getI64IntegerAttr(warps));
  return program;
}

//===----------------------------------------------------------------------===//
// Short convolution
//===----------------------------------------------------------------------===//

static tile::ShortConvShape shapeOf(Value x, Value weight) {
  auto type = cast<RankedTensorType>(weight.getType());
  tile::ShortConvShape shape;
  shape.element = elementOf(x);
  shape.channels = type.getDimSize(0);
  shape.kernel = type.getDimSize(1);
  return shape;
}

LogicalResult hybrid::scheduleOp(Scheduler &scheduler, ShortConvOp op) {
  tile::ShortConvShape shape = shapeOf(op.getX(), op.getWeight());
  shape.hasState = static_cast<bool>(op.getState());
  shape.walkedTokens = scheduler.target.walkedTokens;
  if (failed(shape.verify([&] { return op.emitOpError(); })))
    return failure();
  auto launch = [&](OpBuilder &builder, StringRef variant,
                    const tile::ShortConvShape &tiled) {
    tile::ProgramOp program =
        scheduler.programs.get(op, variant, [&](OpBuilder &programs, ModuleOp) {
          return tile::buildShortConvForward(programs, op.getLoc(), tiled);
        });
    SmallVector<Value> inputs{op.getX(), op.getWeight(), op.getSegments()};
    SmallVector<int64_t> ties;
    if (op.getState()) {
      ties = {1, 3};
      inputs.push_back(op.getState());
    }
    DispatchOp dispatch = scheduler.dispatch(
        builder, op.getLoc(), program, inputs, op->getResultTypes(), ties);
    return SmallVector<Value>(dispatch->getResults());
  };
  auto whole = [&](OpBuilder &builder) {
    return launch(builder, "forward", shape);
  };
  // One block holds the whole segment, so the next never reads the state.
  tile::ShortConvShape stepShape = shape;
  stepShape.tokenTile = std::max(scheduler.target.stepTokens, shape.kernel - 1);
  auto step = [&](OpBuilder &builder) {
    return launch(builder, "step", stepShape);
  };

  OpBuilder builder(op);
  std::string pass =
      "one pass over " + std::to_string(shape.channels) + " channels";
  if (!shape.hasState || scheduler.target.singleRows == 0) {
    scheduler.chose(op, "HYB-S301", pass,
                    shape.hasState ? "earlier rows come from the state"
                                   : "whole sequences");
    op->replaceAllUsesWith(whole(builder));
  } else {
    scheduler.chose(op, "HYB-S301",
                    pass + ", in blocks of " + Twine(stepShape.tokenTile) +
                        " rows for segments of no more",
                    "earlier rows come from the state");
    AffineExpr longest = getSymbolExpr(CallSymbol::longest, op.getContext());
    op->replaceAllUsesWith(
        scheduler.either(builder, op.getLoc(), op->getResultTypes(),
                         stepShape.tokenTile - longest, step, whole));
  }
  op.erase();
  return success();
}

/// A few hundred rows of parts are one or two tiles, so that what takes long,
/// the way to memory, is gone once or twice.
static void tileForParts(tile::ReduceTokensShape &shape) {
  shape.rowTile = 256;
  shape.columnTile = 16;
}

/// Parts of dw, one per block of tokens, are added in their order.
static Value addParts(Scheduler &scheduler, ShortConvGradOp op,
                      OpBuilder &builder, Value parts) {
  auto type = cast<RankedTensorType>(op.getDweight().getType());
  tile::ReduceTokensShape sum;
  sum.sizes = {type.getNumElements()};
  tileForParts(sum);
  tile::ProgramOp program = scheduler.programs.get(
      op, "sum_parts", [&](OpBuilder &programs, ModuleOp) {
        return tile::buildReduceTokens(programs, op.getLoc(), sum);
      });
  DispatchOp dispatch = scheduler.dispatch(builder, op.getLoc(), program, parts,
                                           type.clone(sum.sizes));
  return ReshapeOp::create(builder, op.getLoc(), type, dispatch->getResult(0));
}

LogicalResult hybrid::scheduleOp(Scheduler &scheduler, ShortConvGradOp op) {
  tile::ShortConvShape shape = shapeOf(op.getX(), op.getWeight());
  shape.walkedTokens = scheduler.target.backwardWalkedTokens;
  // As many bytes as of f32: of a step on the way at once, and of a part, so
  // that finding its first segment and adding up its walkers weigh no more.
  const int64_t perWord = 32 / shape.element.getIntOrFloatBitWidth();
  shape.walkedTokens *= perWord;
  shape.partTokens *= perWord;
  if (failed(shape.verify([&] { return op.emitOpError(); })))
    return failure();
  OpBuilder builder(op);
  tile::ProgramOp program = scheduler.programs.get(
      op, "backward", [&](OpBuilder &programs, ModuleOp) {
        // Left alone, ptxas takes 156 registers a thread, which 128 do for.
        return besideOthers(
            scheduler,
            tile::buildShortConvBackward(programs, op.getLoc(), shape), 16);
      });
  SmallVector<Type> types(op->getResultTypes());
  std::string over = "over " + std::to_string(shape.channels) + " channels";
  if (shape.walkedTokens > 0) {
    scheduler.chose(op, "HYB-S302",
                    "parts of " + Twine(shape.partTokens) + " tokens " + over,
                    "channels alone leave processors idle");
    types[1] = workspaceType(
        AffineMap::get(0, numCallSymbols,
                       getSymbolExpr(CallSymbol::tokens, op.getContext())
                           .ceilDiv(shape.partTokens)),
        {shape.channels * shape.kernel});
  } else {
    scheduler.chose(op, "HYB-S302", "one pass " + over,
                    "the weight's gradient is summed in token order");
  }
  DispatchOp dispatch = scheduler.dispatch(
      builder, op.getLoc(), program,
      {op.getX(), op.getWeight(), op.getSegments(), op.getDy()}, types);
  op.getDx().replaceAllUsesWith(dispatch->getResult(0));
  Value dw = dispatch->getResult(1);
  if (shape.walkedTokens > 0)
    dw = addParts(scheduler, op, builder, dw);
  op.getDweight().replaceAllUsesWith(dw);
  op.erase();
  return success();
}

//===----------------------------------------------------------------------===//
// Row-wise regions
//===----------------------------------------------------------------------===//

static FailureOr<tile::ProgramOp> rowwiseProgram(Scheduler &scheduler,
                                                 Operation *op, bool inPlace,
                                                 int64_t mostRows = 64) {
  std::string variant =
      (inPlace ? "in_place_" : "rows_") + llvm::utostr(mostRows);
  tile::ProgramOp program = scheduler.programs.get(
      op, variant, [&](OpBuilder &programs, ModuleOp) -> tile::ProgramOp {
        FailureOr<tile::ProgramOp> built = tile::buildRowwise(
            programs, op, scheduler.target.rowwiseElements, mostRows);
        if (failed(built))
          return {};
        if (inPlace) {
          // The result is stored where the first operand was loaded.
          Block &body = built->getBlock();
          body.getArguments().back().replaceAllUsesWith(body.getArgument(0));
          body.eraseArgument(body.getNumArguments() - 1);
        }
        // 80 registers a thread; of few programs it is more, up to 117.
        return besideOthers(scheduler, *built, 24);
      });
  if (!program)
    return failure();
  return program;
}

/// Results that are read by a sum over tokens alone.
static SmallVector<bool> summedResults(const Scheduler &scheduler,
                                       Operation *op) {
  return llvm::map_to_vector(op->getResults(), [&](Value result) {
    return !scheduler.target.takesTurns && result.hasOneUse() &&
           isa<ReduceTokensOp>(*result.getUsers().begin());
  });
}

/// A launch that gives parts of the sums in place of what is summed; the sums
/// over tokens that read it add the parts.
static LogicalResult scheduleSums(Scheduler &scheduler, Operation *op,
                                  ArrayRef<bool> summed) {
  tile::RowSums sums;
  sums.summed.assign(summed.begin(), summed.end());
  // With 64 rows of 16 bits a point, 32,768 are a round and a third of the
  // points that a GPU holds at once; halves of them leave less of the last.
  auto isNarrow = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getElementTypeBitWidth() == 16;
  };
  if (llvm::any_of(op->getOperandTypes(), isNarrow))
    sums.part /= 2;
  std::string variant = "sums";
  for (bool isSummed : summed)
    variant += isSummed ? "_parts" : "_rows";
  tile::ProgramOp program = scheduler.programs.get(
      op, variant, [&](OpBuilder &programs, ModuleOp) -> tile::ProgramOp {
        FailureOr<tile::ProgramOp> built = tile::buildRowwiseSums(
            programs, op, sums, scheduler.target.rowwiseElements);
        return succeeded(built) ? *built : tile::ProgramOp();
      });
  if (!program)
    return failure();
  scheduler.chose(op, "HYB-S306",
                  "one pass over the rows, sums in parts of " +
                      Twine(sums.part) + " rows",
                  "what is summed over tokens alone is not stored");
  SmallVector<Type> types;
  for (auto [result, isSummed] : llvm::zip_equal(op->getResults(), summed)) {
    auto type = cast<RankedTensorType>(result.getType());
    AffineExpr rows = getSizes(type).getResult(0);
    types.push_back(isSummed
                        ? workspaceType(AffineMap::get(0, numCallSymbols,
                                                       rows.ceilDiv(sums.part)),
                                        type.getShape().drop_front())
                        : type);
  }
  OpBuilder builder(op);
  DispatchOp dispatch = scheduler.dispatch(builder, op->getLoc(), program,
                                           op->getOperands(), types);
  op->replaceAllUsesWith(dispatch);
  op->erase();
  return success();
}

LogicalResult hybrid::scheduleRowwise(Scheduler &scheduler, Operation *op) {
  SmallVector<bool> summed = summedResults(scheduler, op);
  if (llvm::is_contained(summed, true))
    return scheduleSums(scheduler, op, summed);
  FailureOr<tile::ProgramOp> blocks = rowwiseProgram(scheduler, op, false);
  if (failed(blocks))
    return failure();
  auto region = dyn_cast<RowwiseOp>(op);
  size_t count =
      region ? region.getBody().front().getOperations().size() - 1 : 1;
  std::string fused = std::to_string(count) +
                      (count == 1 ? " operation" : " operations") + " fused";
  auto launch = [&](tile::ProgramOp program) {
    return [&scheduler, op, program](OpBuilder &builder) {
      DispatchOp dispatch =
          scheduler.dispatch(builder, op->getLoc(), program, op->getOperands(),
                             op->getResultTypes());
      return SmallVector<Value>(dispatch->getResults());
    };
  };
  OpBuilder builder(op);
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  FailureOr<tile::ProgramOp> single = blocks;
  const int64_t singleRows = scheduler.target.singleRows;
  if (singleRows > 0 && type.isDynamicDim(0) && isDecoded(op))
    single = rowwiseProgram(scheduler, op, false, /*mostRows=*/1);
  if (failed(single))
    return failure();
  if (*single != *blocks) {
    scheduler.chose(op, "HYB-S305",
                    "up to " + Twine(singleRows) +
                        " rows one by one, else in blocks",
                    fused);
    AffineExpr rows = getSizes(type).getResult(0);
    op->replaceAllUsesWith(
        scheduler.either(builder, op->getLoc(), op->getResultTypes(),
                         singleRows - rows, launch(*single), launch(*blocks)));
  } else {
    scheduler.chose(op, "HYB-S303", "one pass over the rows", fused);
    op->replaceAllUsesWith(launch(*blocks)(builder));
  }
  op->erase();
  return success();
}

LogicalResult hybrid::scheduleInPlace(Scheduler &scheduler, Operation *op) {
  FailureOr<tile::ProgramOp> program = rowwiseProgram(scheduler, op, true);
  if (failed(program))
    return failure();
  scheduler.chose(op, "HYB-S304", "one pass over the rows, in place",
                  "the first operand is an accumulated gradient");
  OpBuilder builder(op);
  DispatchOp dispatch =
      scheduler.dispatch(builder, op->getLoc(), *program, op->getOperands(),
                         op->getResultTypes(), /*ties=*/{0, 0});
  op->replaceAllUsesWith(dispatch);
  op->erase();
  return success();
}

//===----------------------------------------------------------------------===//
// Embedding, sums over tokens
//===----------------------------------------------------------------------===//

/// Replaces `op` by one launch of the program of `build`.
static LogicalResult
replaceByLaunch(Scheduler &scheduler, Operation *op, StringRef variant,
                llvm::function_ref<tile::ProgramOp(OpBuilder &)> build) {
  tile::ProgramOp program =
      scheduler.programs.get(op, variant, [&](OpBuilder &programs, ModuleOp) {
        return build(programs);
      });
  OpBuilder builder(op);
  DispatchOp dispatch = scheduler.dispatch(
      builder, op->getLoc(), program, op->getOperands(), op->getResultTypes());
  op->replaceAllUsesWith(dispatch);
  op->erase();
  return success();
}

static tile::EmbedShape embedShape(Value table, Value rows) {
  auto type = cast<RankedTensorType>(table.getType());
  tile::EmbedShape shape;
  shape.element = elementOf(rows);
  shape.vocab = type.getDimSize(0);
  shape.width = type.getDimSize(1);
  return shape;
}

/// With many processors each looks after a few rows of the table, so that there
/// are some two thousand points, more from a vocabulary of 131,072 on: each
/// looks through all ids.
static tile::EmbedShape embedGradShape(const TargetTraits &target,
                                       EmbedGradOp op, bool accumulate) {
  tile::EmbedShape shape = embedShape(op.getDtable(), op.getDy());
  shape.accumulate = accumulate;
  if (!target.takesTurns)
    shape.pointRows = std::min<int64_t>(
        llvm::PowerOf2Ceil(llvm::divideCeil(shape.vocab, 2048)), 64);
  return shape;
}

LogicalResult hybrid::scheduleOp(Scheduler &scheduler, EmbedOp op) {
  scheduler.chose(op, "HYB-S501", "rows gathered by id", "one row per token");
  return replaceByLaunch(scheduler, op, "gather", [&](OpBuilder &programs) {
    return tile::buildEmbed(programs, op.getLoc(),
                            embedShape(op.getTable(), op.getResult()));
  });
}

LogicalResult hybrid::scheduleOp(Scheduler &scheduler, EmbedGradOp op) {
  scheduler.chose(op, "HYB-S502", "rows added by id, in token order",
                  "tokens share rows, so columns run apart and tokens do not");
  return replaceByLaunch(scheduler, op, "scatter", [&](OpBuilder &programs) {
    return tile::buildEmbedGrad(programs, op.getLoc(),
                                embedGradShape(scheduler.target, op,
                                               /*accumulate=*/false));
  });
}

/// The tokens in the order of `ids`, which the entry gets beside the ids of a
/// batch; null for other ids. The argument is added where there is none yet.
static Value tokensById(Value ids) {
  constexpr StringLiteral role = "tokens_by_id";
  auto argument = dyn_cast<BlockArgument>(ids);
  auto function =
      argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp())
               : func::FuncOp();
  if (!function)
    return {};
  auto hasRole = [&](BlockArgument other, StringRef wanted) {
    auto role = function.getArgAttrOfType<StringAttr>(other.getArgNumber(),
                                                      "hybrid.role");
    return role && role == wanted;
  };
  if (!hasRole(argument, "ids"))
    return {};
  for (BlockArgument other : function.getArguments())
    if (hasRole(other, role))
      return other;
  Builder builder(ids.getContext());
  unsigned number = function.getNumArguments();
  LogicalResult added = function.insertArgument(
      number,
      RankedTensorType::get({ShapedType::kDynamic, 3}, builder.getI32Type()),
      builder.getDictionaryAttr(
          builder.getNamedAttr("hybrid.role", builder.getStringAttr(role))),
      ids.getLoc());
  assert(succeeded(added) && "an argument more");
  (void)added;
  return function.getArgument(number);
}

Value hybrid::scheduleAccumulated(Scheduler &scheduler, EmbedGradOp op,
                                  OpBuilder &builder, Value sum) {
  if (Value byId = tokensById(op.getIds())) {
    scheduler.chose(op, "HYB-S510",
                    "added to the gradient, a row by all of its tokens",
                    "the runtime gives the tokens in the order of their ids");
    tile::ProgramOp program =
        scheduler.programs.get(op, "by id", [&](OpBuilder &programs, ModuleOp) {
          return tile::buildEmbedGradByIds(
              programs, op.getLoc(), embedShape(op.getDtable(), op.getDy()));
        });
    return scheduler
        .dispatch(builder, op.getLoc(), program, {byId, op.getDy(), sum},
                  sum.getType(), /*ties=*/{0, 2})
        ->getResult(0);
  }
  tile::ProgramOp program = scheduler.programs.get(
      op, "accumulate", [&](OpBuilder &programs, ModuleOp) {
        return tile::buildEmbedGrad(programs, op.getLoc(),
                                    embedGradShape(scheduler.target, op,
                                                   /*accumulate=*/true));
      });
  scheduler.chose(op, "HYB-S503", "added to the gradient in place",
                  "nothing else reads the sum");
  return scheduler
      .dispatch(builder, op.getLoc(), program, {op.getIds(), op.getDy(), sum},
                sum.getType(), /*ties=*/{0, 2})
      ->getResult(0);
}

static tile::ReduceTokensShape reduceShape(ReduceTokensOp op,
                                           bool accumulate = false) {
  auto x = cast<RankedTensorType>(op.getX().getType());
  auto y = cast<RankedTensorType>(op.getResult().getType());
  tile::ReduceTokensShape shape;
  llvm::append_range(shape.sizes, x.getShape().drop_front());
  shape.summed = shape.sizes.size() - y.getRank();
  shape.accumulate = accumulate;
  return shape;
}

/// Whether what is summed is parts already (scheduleSums).
static bool sumsParts(ReduceTokensOp op) {
  auto type = cast<RankedTensorType>(op.getX().getType());
  return isa_and_nonnull<SizedAttr>(type.getEncoding());
}

/// Sums of parts of the tokens, for machines where columns alone leave
/// processors idle: [parts, what is left].
static Value sumParts(Scheduler &scheduler, ReduceTokensOp op,
                      OpBuilder &builder) {
  if (sumsParts(op))
    return op.getX();
  constexpr int64_t part = 512;
  tile::ReduceTokensShape shape = reduceShape(op);
  shape.part = part;
  shape.rowTile = 64;
  tile::ProgramOp program =
      scheduler.programs.get(op, "parts", [&](OpBuilder &programs, ModuleOp) {
        return tile::buildReduceTokens(programs, op.getLoc(), shape);
      });
  auto parts = AffineMap::get(
      0, numCallSymbols,
      getSymbolExpr(CallSymbol::tokens, op.getContext()).ceilDiv(part));
  auto sizes = ArrayRef(shape.sizes).drop_front(shape.summed);
  return scheduler
      .dispatch(builder, op.getLoc(), program, op.getX(),
                workspaceType(parts, sizes))
      ->getResult(0);
}

static tile::ProgramOp sumOfParts(Scheduler &scheduler, ReduceTokensOp op,
                                  bool accumulate) {
  tile::ReduceTokensShape shape = reduceShape(op, accumulate);
  if (!sumsParts(op)) {
    shape.sizes.erase(shape.sizes.begin(), shape.sizes.begin() + shape.summed);
    shape.summed = 0;
  }
  tileForParts(shape);
  return scheduler.programs.get(
      op, accumulate ? "accumulate_parts" : "sum_parts",
      [&](OpBuilder &programs, ModuleOp) {
        return tile::buildReduceTokens(programs, op.getLoc(), shape);
      });
}

LogicalResult hybrid::scheduleOp(Scheduler &scheduler, ReduceTokensOp op) {
  if (!scheduler.target.takesTurns) {
    OpBuilder builder(op);
    scheduler.chose(op, "HYB-S511", "summed in parts, then over the parts",
                    "columns alone leave processors idle");
    Value parts = sumParts(scheduler, op, builder);
    op->replaceAllUsesWith(scheduler.dispatch(
        builder, op.getLoc(), sumOfParts(scheduler, op, /*accumulate=*/false),
        parts, op->getResultTypes()));
    op.erase();
    return success();
  }
  scheduler.chose(op, "HYB-S504", "summed in token order", "columns run apart");
  return replaceByLaunch(scheduler, op, "sum", [&](OpBuilder &programs) {
    return tile::buildReduceTokens(programs, op.getLoc(), reduceShape(op));
  });
}

Value hybrid::scheduleAccumulated(Scheduler &scheduler, ReduceTokensOp op,
                                  OpBuilder &builder, Value sum) {
  scheduler.chose(op, "HYB-S505", "added to the gradient in place",
                  "nothing else reads the sum");
  if (!scheduler.target.takesTurns) {
    Value parts = sumParts(scheduler, op, builder);
    return scheduler
        .dispatch(builder, op.getLoc(),
                  sumOfParts(scheduler, op, /*accumulate=*/true), {parts, sum},
                  sum.getType(), /*ties=*/{0, 1})
        ->getResult(0);
  }
  tile::ProgramOp program = scheduler.programs.get(
      op, "accumulate", [&](OpBuilder &programs, ModuleOp) {
        return tile::buildReduceTokens(programs, op.getLoc(),
                                       reduceShape(op, true));
      });
  return scheduler
      .dispatch(builder, op.getLoc(), program, {op.getX(), sum}, sum.getType(),
                /*ties=*/{0, 1})
      ->getResult(0);
}

LogicalResult hybrid::scheduleOp(Scheduler &scheduler, LastRowsOp op) {
  scheduler.chose(op, "HYB-S506", "one row per segment", "others are not read");
  return replaceByLaunch(scheduler, op, "rows", [&](OpBuilder &programs) {
    auto x = cast<RankedTensorType>(op.getX().getType());
    return tile::buildLastRows(programs, op.getLoc(), x.getDimSize(1),
                               x.getElementType());
  });
}
