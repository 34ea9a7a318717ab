//===- Plan.h - launch list over an arena -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the runtime executes, as data: for every entry point a list of launches
// and the buffers they read and write. Sizes, strides, offsets and guards are
// affine expressions of the six symbols of a call (GraphShapes.h). Nothing here
// depends on a target's code; `docs/rationale/architecture.md` section 6 is the
// form it has in an artefact.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_PLAN_PLAN_H
#define HYBRID_PLAN_PLAN_H

#include "hybrid/Plan/Layout.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/JSON.h"
#include <optional>
#include <string>
#include <vector>

namespace hybrid {

/// What a buffer is to the caller. Everything but `Arena` and `Constant` is
/// bound by the runtime when the entry is called.
enum class BufferKind {
  Arena,
  Param,
  ParamCopy,
  Gradient,
  State,
  Ids,
  TokensById,
  Labels,
  Weights,
  SegmentTable,
  TokenSegment,
  RandomKey,
  Loss,
  Logits,
  Moment1,
  Moment2,
  Scalars,
  Input,
  Output,
  Constant,
};

llvm::StringRef stringifyBufferKind(BufferKind kind);

/// f32, bf16, f16 or i32, as plans and tables name it.
std::string stringifyElementType(mlir::Type type);

struct PlanBuffer {
  /// For people: the place in the model of the value that first used it.
  std::string name;
  BufferKind kind = BufferKind::Arena;
  /// f32, bf16, f16 or i32.
  mlir::Type type;
  llvm::SmallVector<mlir::AffineExpr, 4> sizes;
  /// Of a parameter or a state, of what a random key is for, or the name of an
  /// input or output; empty for a whole flat buffer and others.
  std::string path;
  /// Of an arena buffer: the launches it is live for, both inclusive.
  unsigned first = 0, last = 0;
  /// Of an arena buffer that only launches of these pieces see: it has the rows
  /// of a piece.
  std::optional<unsigned> pieces;
  /// Of a constant.
  mlir::DenseElementsAttr data;
};

/// A kernel's view of a buffer. The offset of one that a launch in pieces has
/// of a whole buffer is an expression of the first row of the piece too, which
/// is dim 0.
struct PlanView {
  unsigned buffer = 0;
  Layout layout;
};

/// That a launch computes op(a) op(b) and nothing else: which of its views the
/// factors and the result are. With `parts` it sums what the launch in front of
/// it made, whose views a and b are; both are left out together.
struct PlanProduct {
  unsigned a = 0, b = 1, c = 2;
  bool transposeA = false, transposeB = false;
  /// Added to what c holds.
  bool accumulate = false;
  bool parts = false;
};

/// `expression >= 0`, over the symbols.
using PlanConstraint = mlir::AffineExpr;

struct PlanAlternative {
  /// All must hold; none: always runs.
  llvm::SmallVector<PlanConstraint, 2> guard;
  unsigned kernel = 0;
  std::vector<PlanView> views;
  std::optional<PlanProduct> product;
  /// The `hybrid.dispatch` it is made from, while the module is unchanged; not
  /// part of an artefact.
  mlir::Operation *dispatch = nullptr;
};

struct PlanLaunch {
  /// The place in the model; layer is -1 outside layers.
  int64_t layer = -1;
  std::string op;
  llvm::SmallVector<PlanAlternative, 1> alternatives;
};

/// A tensor map that a kernel takes after its views and its grid: of one of the
/// views, whose elements have 16 bits, with the box of one copy.
struct PlanTensorMap {
  int64_t view;
  std::string type;
  std::vector<int64_t> box;
};

struct PlanKernel {
  /// The program in the module, and the symbol in the code.
  std::string symbol;
  /// For people, and to pick kernels by in a trace.
  std::string name;
  /// When it makes what is not a number from numbers; empty: never.
  std::string caution;
  /// Bytes of scratch memory a task needs, on a GPU of a block's dynamic shared
  /// memory; the target's code generation knows.
  uint64_t scratch = 0;
  /// Of a block; 0 where a task is one thread's.
  uint64_t threads = 0;
  /// On a GPU: whether it may begin before the launch in front of it has ended.
  bool overlaps = false;
  /// On a GPU: whether its blocks take several tasks, so that no more have to
  /// be started than run at once.
  bool persistent = false;
  std::vector<PlanTensorMap> maps;
  llvm::SmallVector<mlir::AffineExpr, 4> grid;
  llvm::SmallVector<bool, 4> parallel;
};

/// Launches that run one after the other for a piece of the rows, then for the
/// next. In their guards, grids and views `tokens` is the rows of the piece.
struct PlanPieces {
  /// Of every piece but the last one, which has what is left.
  int64_t rows = 0;
  /// Launches, both inclusive.
  unsigned first = 0, last = 0;
};

struct PlanEntry {
  std::string name;
  std::vector<PlanBuffer> buffers;
  std::vector<PlanLaunch> launches;
  /// In the order of their launches, of which they share none.
  std::vector<PlanPieces> pieces;

  /// The pieces that a launch runs in, or null.
  const PlanPieces *piecesOf(unsigned launch) const;
};

struct Plan {
  std::vector<PlanKernel> kernels;
  std::vector<PlanEntry> entries;
};

/// Plans every entry of a scheduled module. Emits an error and fails where a
/// value cannot be given a place without a copy, or where an input is read
/// after the launch that overwrites it.
mlir::FailureOr<Plan> buildPlan(mlir::ModuleOp module);

/// The plan as it stands in an artefact. Keys are sorted and nothing depends on
/// addresses: the same plan gives the same bytes.
llvm::json::Value planToJSON(const Plan &plan);

/// An expression of the six symbols as EXPR of the artefact.
llvm::json::Value exprToJSON(mlir::AffineExpr expr);

} // namespace hybrid

#endif // HYBRID_PLAN_PLAN_H
