//===- ProgramTable.h - tile programs, one per content -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_SCHEDULE_PROGRAMTABLE_H
#define HYBRID_LIB_SCHEDULE_PROGRAMTABLE_H

#include "hybrid/Tile/TileOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace hybrid {

/// The programs of a module, each with its record where it has one. Equal
/// programs are kept once; the name is the family's with a hash of the content,
/// so it does not depend on what else is in the module.
class ProgramTable {
public:
  using Build =
      llvm::function_ref<tile::ProgramOp(mlir::OpBuilder &, mlir::ModuleOp)>;

  explicit ProgramTable(mlir::ModuleOp module) : module(module) {}

  /// The program for `op`, in the named variant of it. `build` is called only
  /// when no operation of the same name, attributes, types and regions asked
  /// before; it may fail with an error and return null. A `tile.schedule` of
  /// the program that it makes right behind it belongs to the program.
  tile::ProgramOp get(mlir::Operation *op, llvm::StringRef variant,
                      Build build);

  /// `program`, and its record, with every stride but the last unknown in the
  /// views where `strided` is set.
  tile::ProgramOp relaxed(tile::ProgramOp program,
                          llvm::ArrayRef<bool> strided);

  /// `program`, or one of the same content that was there before it.
  tile::ProgramOp add(tile::ProgramOp program, llvm::StringRef family) {
    return unique(program, family.str());
  }

  size_t size() const { return byContent.size(); }

private:
  tile::ProgramOp unique(tile::ProgramOp program, llvm::StringRef family);

  mlir::ModuleOp module;
  llvm::StringMap<tile::ProgramOp> byRequest, byContent;
};

} // namespace hybrid

#endif // HYBRID_LIB_SCHEDULE_PROGRAMTABLE_H
