//===- Reference.h - a graph, and the launches that compute it -----------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_VERIFY_REFERENCE_H
#define HYBRID_LIB_VERIFY_REFERENCE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

namespace hybrid {

struct Plan;

/// The name of a kernel without what tells apart programs of one algorithm.
inline llvm::StringRef algorithmOf(llvm::StringRef kernel) {
  return kernel.rsplit('_').first;
}

/// Which value of the graph each launch of a spec's plan writes.
///
/// The operations of the graph (as phase `fuse` leaves it) are numbered in
/// their locations before they are scheduled. A strategy gives its launches the
/// location of the operation it replaces, so that a launch tells which
/// operation it computes.
class Reference {
public:
  /// View `view` of a launch holds the elements of `value`, of the graph.
  struct Output {
    unsigned view;
    mlir::Value value;
  };
  /// One alternative of a launch.
  struct Choice {
    std::string kernel;
    llvm::SmallVector<Output, 2> outputs;
    /// It runs for some rows at a time: each run adds rows to values that have
    /// one per token.
    bool inPieces = false;
  };
  struct Entry {
    /// The graph.
    mlir::func::FuncOp function;
    /// By index in the plan's list.
    std::vector<llvm::SmallVector<Choice, 1>> launches;
  };

  /// Takes the spec through the phases for one target. Errors in it go to the
  /// diagnostic handlers.
  static llvm::Expected<Reference> create(mlir::MLIRContext &context,
                                          llvm::StringRef spec,
                                          llvm::StringRef target);

  /// Null where the spec has no such entry.
  const Entry *entry(llvm::StringRef name) const {
    auto found = entries.find(name);
    return found == entries.end() ? nullptr : &found->second;
  }

private:
  void collect(mlir::ModuleOp scheduled, const Plan &plan);

  mlir::OwningOpRef<mlir::ModuleOp> graph;
  llvm::StringMap<Entry> entries;
};

} // namespace hybrid

#endif // HYBRID_LIB_VERIFY_REFERENCE_H
